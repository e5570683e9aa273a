#include "muster/process_group.h"

#include "base/forked.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/group/process_group_impl.h"
#include "client/group/process_group_run.h"

// The group's life. Its other calls are in process_group_blocking.cpp and
// process_group_callback.cpp, the `create` by host and port is in src/embed.

MUSTER_BEGIN_NAMESPACE

using client::Group;
using client::Link;

namespace {

/// The same call with a handle in place of the group.
template <class Wrap>
auto wrapped(client::PreparedCall<std::shared_ptr<Group>> call, Wrap wrap) {
  client::PreparedCall<StatelessProcessGroup> made;
  made.context = std::move(call.context);
  made.timeout = call.timeout;
  made.body = std::move(call.body);
  made.ticket = std::move(call.ticket);
  made.refused = std::move(call.refused);
  made.order = std::move(call.order);
  const auto inner = std::make_shared<std::pair<decltype(call.decode), Wrap>>(
      std::move(call.decode), std::move(wrap));
  made.decode = [inner](std::string&& reply) -> Result<StatelessProcessGroup> {
    auto group = inner->first(std::move(reply));
    if (!group) return std::move(group).error();
    return inner->second(*std::move(group));
  };
  return made;
}

}  // namespace

std::shared_ptr<StatelessProcessGroup::Impl> StatelessProcessGroup::Impl::create(
    std::shared_ptr<Group> group, Store store, std::shared_ptr<client::GroupHost> host) {
  auto* const impl = new Impl(std::move(group), std::move(store), std::move(host));
  return std::shared_ptr<Impl>(impl, [](Impl* last) {
    if (!last->link()->is_forked()) {
      last->group().leave_unasked();
      delete last;
      return;
    }
    last->link()->close_inherited();
    base::keep_forever(std::shared_ptr<Impl>(last, [](Impl*) {}));
  });
}

Result<StatelessProcessGroup> StatelessProcessGroup::Impl::join(const Store& store,
                                                                std::string_view name, int rank,
                                                                int world_size,
                                                                const GroupOptions& options,
                                                                Duration timeout, Host host) {
  if (!store.impl()) return client::moved_from("create");
  const std::shared_ptr<Link> link = store.impl()->link();
  return client::block_on<StatelessProcessGroup>(link, "create", [&] {
    auto call = Group::join_call(link, name, rank, world_size, options);
    call.timeout = timeout;
    return wrapped(std::move(call), [impl = store.impl(), host](std::shared_ptr<Group> group) {
      return StatelessProcessGroup(create(std::move(group), Store(impl), host));
    });
  });
}

Call StatelessProcessGroup::Impl::join(const Store& store, std::string_view name, int rank,
                                       int world_size, const GroupOptions& options,
                                       Handler<StatelessProcessGroup> handler) {
  if (!handler) return {};
  if (!store.impl()) {
    handler(client::moved_from("create"));
    return {};
  }
  const std::shared_ptr<Link> link = store.impl()->link();
  return client::start<StatelessProcessGroup>(link, "create", std::move(handler), [&] {
    return wrapped(Group::join_call(link, name, rank, world_size, options),
                   [impl = store.impl()](std::shared_ptr<Group> group) {
                     return StatelessProcessGroup(create(std::move(group), Store(impl), nullptr));
                   });
  });
}

Result<StatelessProcessGroup> StatelessProcessGroup::create(const Store& store,
                                                            std::string_view name, int rank,
                                                            int world_size, GroupOptions options) {
  return Impl::join(store, name, rank, world_size, options, options.timeout, nullptr);
}

Call StatelessProcessGroup::create_async(const Store& store, std::string_view name, int rank,
                                         int world_size, GroupOptions options,
                                         Handler<StatelessProcessGroup> handler) {
  return Impl::join(store, name, rank, world_size, options, std::move(handler));
}

StatelessProcessGroup::StatelessProcessGroup(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
StatelessProcessGroup::~StatelessProcessGroup() = default;
StatelessProcessGroup::StatelessProcessGroup(StatelessProcessGroup&&) noexcept = default;
StatelessProcessGroup& StatelessProcessGroup::operator=(StatelessProcessGroup&&) noexcept = default;

Result<StatelessProcessGroup> StatelessProcessGroup::regroup(RegroupOptions options,
                                                             Duration timeout) {
  return client::run_group<StatelessProcessGroup>(impl_, "regroup", [&](Group& group) {
    return wrapped(group.regroup_call(options, timeout), [impl = impl_](auto next) {
      return StatelessProcessGroup(
          Impl::create(std::move(next), Store(impl->store().impl()), impl->host()));
    });
  });
}

Call StatelessProcessGroup::regroup_async(RegroupOptions options, Duration timeout,
                                          Handler<StatelessProcessGroup> handler) {
  return client::run_group<StatelessProcessGroup>(
      impl_, "regroup", std::move(handler), [&](Group& group) {
        return wrapped(group.regroup_call(options, timeout), [store = impl_->store().impl(),
                                                              host = impl_->host()](auto next) {
          return StatelessProcessGroup(Impl::create(std::move(next), Store(store), host));
        });
      });
}

GroupWatch StatelessProcessGroup::watch(std::function<void(const Error& error)> handler) {
  return impl_ ? impl_->group().losses().watches().add(std::move(handler)) : GroupWatch();
}

Result<std::uint64_t> StatelessProcessGroup::close(Duration linger) {
  if (!impl_) return client::moved_from("close");
  if (auto refused = client::refusal_to_begin(*impl_->link(), client::Form::blocking)) {
    return about("close", Happened::no, *std::move(refused));
  }
  const std::shared_ptr<Impl> impl = std::move(impl_);
  impl->group().leave_unasked();
  if (!impl->host()) return std::uint64_t{0};
  impl->store().close();
  return impl->host()->stop(linger);
}

void StatelessProcessGroup::cancel() noexcept {
  if (impl_) impl_->group().cancel();
}

int StatelessProcessGroup::rank() const { return impl_ ? impl_->group().rank() : -1; }

int StatelessProcessGroup::world_size() const { return impl_ ? impl_->group().world_size() : 0; }

std::uint64_t StatelessProcessGroup::epoch() const { return impl_ ? impl_->group().epoch() : 0; }

const std::string& StatelessProcessGroup::name() const {
  static const std::string none;
  return impl_ ? impl_->group().name() : none;
}

GroupCounters StatelessProcessGroup::counters() const {
  if (!impl_ || impl_->link()->is_forked()) return {};
  return impl_->group().numbers().counters();
}

Store& StatelessProcessGroup::store() const {
  static Store none{std::shared_ptr<Store::Impl>()};
  return impl_ ? impl_->store() : none;
}

Error StatelessProcessGroup::about_send(Rank destination, Tag tag, Error error) const {
  if (impl_) error.stream = impl_->group().numbers().next_to(destination, tag);
  return about("send_obj", Happened::no, std::move(error));
}

Error StatelessProcessGroup::about_delivery(const Delivery& delivery, Error error) const {
  error.stream = delivery.position();
  return about("recv_obj", Happened::unsaid,
               detail::blamed(std::move(error), delivery.position().source));
}

Error StatelessProcessGroup::about(std::string_view operation, Happened happened,
                                   Error error) const {
  error.operation = operation;
  error.happened = happened;
  if (error.decided_by.empty()) error.decided_by = "client";
  if (error.group.empty()) error.group = name();
  if (error.epoch == 0) error.epoch = epoch();
  return error;
}

MUSTER_END_NAMESPACE
