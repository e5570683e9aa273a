#pragma once

#include "core/draining.h"
#include "core/events.h"
#include "core/live_settings.h"
#include "core/name_spaces.h"
#include "core/sessions.h"

namespace muster::core {

/// What operators change: they end what others have, and the server itself.
class Operators {
 public:
  Operators(EngineServices& services, NameSpaces& name_spaces, Sessions& sessions)
      : settings(services, name_spaces, sessions),
        draining(services, sessions),
        services_(services),
        name_spaces_(name_spaces),
        sessions_(sessions) {}
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  // Requests.
  void ask(const RequestContext& context, const wire::ReportDead& request);
  void ask(const RequestContext& context, const wire::EndSession& request);
  void ask(const RequestContext& context, const wire::DropNameSpace& request);
  void ask(const RequestContext& context, const wire::Drain& request) {
    draining.ask(context, request);
  }
  void ask(const RequestContext& context, const wire::GetSettings& request) {
    settings.tell(context, request);
  }
  void ask(const RequestContext& context, const wire::SetSetting& request) {
    settings.change(context, request);
  }

  LiveSettings settings;
  Draining draining;

 private:
  EngineServices& services_;
  NameSpaces& name_spaces_;
  Sessions& sessions_;
};

}  // namespace muster::core
