// Two ranks meet, exchange an object and pass a barrier. Run it twice:
//
//     quickstart 0 2 29400 &
//     quickstart 1 2 29400

#include <muster/codec_cereal.h>
#include <muster/process_group.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[1]);
  const int world_size = std::atoi(argv[2]);
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[3]));

  // Rank 0 serves; everybody joins. Nothing global: make as many groups as you like.
  auto group = muster::StatelessProcessGroup::create("127.0.0.1", port, rank, world_size);
  if (!group) {
    std::cerr << group.error().message() << '\n';  // says who is missing
    return 1;
  }

  // Every rank gets rank 0's object; any type that cereal can write will do.
  auto config = group->broadcast_obj(std::string("model=muster-7b"), muster::Rank{0});
  auto ranks = group->all_gather_obj(rank);
  if (!config || !ranks || !group->barrier(std::chrono::seconds(5))) return 1;

  std::cout << "rank " << rank << " of " << ranks->size() << ": " << *config << '\n';
  return 0;
}
