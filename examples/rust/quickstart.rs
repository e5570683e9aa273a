// Muster from Rust: a safe wrapper of what is needed here, on muster-c, and a program that uses it.
// Rust 1.63 or later, and nothing but its standard library:
//
//     rustc quickstart.rs -l muster-c
//     musterd --listen 127.0.0.1:29400 &
//     ./quickstart 127.0.0.1:29400 0 2 &
//     ./quickstart 127.0.0.1:29400 1 2

mod muster {
    use std::ffi::{CStr, CString};
    use std::fmt;
    use std::os::raw::{c_char, c_int, c_void};
    use std::ptr::{null, null_mut};
    use std::time::Duration;

    /// What the header muster/c.h declares. Handles are pointers to what only the library knows.
    mod c {
        use super::*;

        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct View {
            pub data: *const c_void,
            pub size: usize,
        }

        #[repr(C)]
        pub struct Error {
            pub size: usize,
            pub code: i32,
            pub happened: i32,
            pub name: *const c_char,
            pub message: *const c_char,
            pub json: *const c_char,
        }

        pub type Handle = *mut c_void;

        extern "C" {
            pub fn muster_error_free(error: *mut Error);
            pub fn muster_bytes_view(bytes: Handle) -> View;
            pub fn muster_bytes_free(bytes: Handle);
            pub fn muster_list_count(list: Handle) -> usize;
            pub fn muster_list_at(list: Handle, index: usize, element: *mut View) -> bool;
            pub fn muster_list_free(list: Handle);
            pub fn muster_store_connect(address: *const c_char, options: *const c_void,
                timeout: i64, store: *mut Handle) -> *mut Error;
            pub fn muster_store_free(store: Handle);
            pub fn muster_store_set(store: Handle, key: View, value: View, options: *const c_void,
                timeout: i64, was_set: *mut bool) -> *mut Error;
            pub fn muster_store_get(store: Handle, key: View, timeout: i64, value: *mut Handle)
                -> *mut Error;
            pub fn muster_group_create(store: Handle, name: *const c_char, rank: c_int,
                world_size: c_int, options: *const c_void, group: *mut Handle) -> *mut Error;
            pub fn muster_group_free(group: Handle);
            pub fn muster_group_barrier(group: Handle, timeout: i64, unconfirmed: *mut Handle)
                -> *mut Error;
            pub fn muster_group_all_gather(group: Handle, codec: u32, object: View, timeout: i64,
                objects: *mut Handle) -> *mut Error;
        }
    }

    /// Why a call has failed.
    #[derive(Debug)]
    pub struct Error {
        pub code: i32,
        /// Whether it may have happened all the same: look before it is repeated.
        pub in_doubt: bool,
        pub message: String,
        /// All fields, such as the ranks at fault.
        pub json: String,
    }

    pub const NOT_FOUND: i32 = 20;
    const CODEC_RAW: u32 = 1;
    const HAPPENED_MAYBE: i32 = 2;

    impl fmt::Display for Error {
        fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            formatter.write_str(&self.message)
        }
    }

    impl std::error::Error for Error {}

    fn checked(error: *mut c::Error) -> Result<(), Error> {
        if error.is_null() {
            return Ok(());
        }
        // Its texts end with a zero, and live until it is freed.
        unsafe {
            let text = |chars| CStr::from_ptr(chars).to_string_lossy().into_owned();
            let copied = Error {
                code: (*error).code,
                in_doubt: (*error).happened == HAPPENED_MAYBE,
                message: text((*error).message),
                json: text((*error).json),
            };
            c::muster_error_free(error);
            Err(copied)
        }
    }

    fn view(bytes: &[u8]) -> c::View {
        c::View { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    /// Of bytes that live as long as what they are a part of.
    unsafe fn copied(view: c::View) -> Vec<u8> {
        if view.size == 0 {
            return Vec::new();
        }
        std::slice::from_raw_parts(view.data.cast(), view.size).to_vec()
    }

    fn microseconds(time: Duration) -> i64 {
        i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
    }

    /// Texts have no zero inside.
    fn text(text: &str) -> CString {
        CString::new(text).expect("a text with a zero in it")
    }

    /// A session with a server.
    pub struct Store(c::Handle);

    // Any thread may call, also several at once.
    unsafe impl Send for Store {}
    unsafe impl Sync for Store {}

    impl Store {
        pub fn connect(address: &str, timeout: Duration) -> Result<Store, Error> {
            let mut store = null_mut();
            let address = text(address);
            checked(unsafe {
                c::muster_store_connect(address.as_ptr(), null(), microseconds(timeout), &mut store)
            })?;
            Ok(Store(store))
        }

        pub fn set(&self, key: &[u8], value: &[u8], timeout: Duration) -> Result<(), Error> {
            checked(unsafe {
                c::muster_store_set(self.0, view(key), view(value), null(), microseconds(timeout),
                    null_mut())
            })
        }

        /// Waits until the key exists; not with a timeout of zero.
        pub fn get(&self, key: &[u8], timeout: Duration) -> Result<Vec<u8>, Error> {
            let mut bytes = null_mut();
            checked(unsafe {
                c::muster_store_get(self.0, view(key), microseconds(timeout), &mut bytes)
            })?;
            unsafe {
                let value = copied(c::muster_bytes_view(bytes));
                c::muster_bytes_free(bytes);
                Ok(value)
            }
        }
    }

    impl Drop for Store {
        fn drop(&mut self) {
            unsafe { c::muster_store_free(self.0) }
        }
    }

    /// This process's rank in a group; it keeps the store's session.
    pub struct Group(c::Handle);

    unsafe impl Send for Group {}
    unsafe impl Sync for Group {}

    impl Group {
        pub fn create(store: &Store, name: &str, rank: i32, world_size: i32)
            -> Result<Group, Error> {
            let mut group = null_mut();
            let name = text(name);
            checked(unsafe {
                c::muster_group_create(store.0, name.as_ptr(), rank, world_size, null(), &mut group)
            })?;
            Ok(Group(group))
        }

        pub fn barrier(&self, timeout: Duration) -> Result<(), Error> {
            checked(unsafe {
                c::muster_group_barrier(self.0, microseconds(timeout), null_mut())
            })
        }

        /// One object of each rank, in their order.
        pub fn all_gather(&self, object: &[u8], timeout: Duration) -> Result<Vec<Vec<u8>>, Error> {
            let mut list = null_mut();
            checked(unsafe {
                c::muster_group_all_gather(self.0, CODEC_RAW, view(object), microseconds(timeout),
                    &mut list)
            })?;
            let mut objects = Vec::new();
            unsafe {
                for index in 0..c::muster_list_count(list) {
                    let mut element = view(&[]);
                    if c::muster_list_at(list, index, &mut element) {
                        objects.push(copied(element));
                    }
                }
                c::muster_list_free(list);
            }
            Ok(objects)
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            unsafe { c::muster_group_free(self.0) }
        }
    }
}

use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 4 {
        return Err("quickstart ADDRESS RANK WORLD_SIZE".into());
    }
    let (rank, world_size): (i32, i32) = (arguments[2].parse()?, arguments[3].parse()?);
    let timeout = Duration::from_secs(30);

    let store = muster::Store::connect(&arguments[1], timeout)?;
    match store.get(format!("absent/{}", rank).as_bytes(), Duration::ZERO) {
        Err(error) if error.code == muster::NOT_FOUND && !error.in_doubt => {
            eprintln!("as it should be: {}\n{}", error, error.json);
        }
        _ => return Err("a key that nobody has set is there".into()),
    }
    if rank == 0 {
        store.set(b"model", b"muster-7b", timeout)?;
    }
    let model = String::from_utf8(store.get(b"model", timeout)?)?;

    let group = muster::Group::create(&store, "quickstart", rank, world_size)?;
    let objects = group.all_gather(format!("rank {}", rank).as_bytes(), timeout)?;
    group.barrier(timeout)?;
    let ranks: Vec<_> = objects.iter().map(|object| String::from_utf8_lossy(object)).collect();
    println!("rank {} of {}: model={}, with {}", rank, world_size, model, ranks.join(", "));
    Ok(())
}
