# Shared: libmuster.so is found by the loader when the program starts.
g++ -std=c++17 host.cpp -o host $(pkg-config --cflags --libs muster)

# Static, also where the shared library is installed.
libmuster=$(pkg-config --variable=libdir muster)/libmuster.a
g++ -std=c++17 host.cpp -o host_static $(pkg-config --cflags muster) "$libmuster" -pthread
