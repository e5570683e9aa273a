#pragma once

#include <string_view>

namespace muster::server::http {

/// Asks for a token. Its script keeps the link to a group for the page that comes then: a browser
/// forgets what stands behind the "#" when a form is sent.
inline constexpr std::string_view login_page =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Log in to muster</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<style>:root{color-scheme:light dark;--back:#f4f6f8;--face:#fff;--ink:#17202b;"
    "--soft:#526071;--line:#8a97a5;--mark:#1f5fbf;--on:#fff}\n"
    "@media (prefers-color-scheme:dark){:root{--back:#0d1218;--face:#151c24;--ink:#e5eaf0;"
    "--soft:#9dabba;--line:#5d6b7a;--mark:#7fb0f5;--on:#0d1218}}\n"
    "body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--back);"
    "color:var(--ink);font:15px/1.5 system-ui,sans-serif}\n"
    "main{width:min(21rem,100vw - 3rem);padding:1.5rem;border-radius:12px;"
    "background:var(--face)}\n"
    "h1{margin:0;font-size:1.3rem}\n"
    "p{margin:.2rem 0 1.1rem;color:var(--soft)}\n"
    "label{display:block;font-weight:600}\n"
    "input,button{box-sizing:border-box;width:100%;margin-top:.35rem;padding:.55rem .7rem;"
    "border:1px solid var(--line);border-radius:8px;font:inherit;color:inherit;"
    "background:var(--back)}\n"
    "button{margin-top:.9rem;border-color:var(--mark);background:var(--mark);color:var(--on);"
    "font-weight:650;cursor:pointer}\n"
    ":focus-visible{outline:2px solid var(--mark);outline-offset:2px}\n"
    "</style>\n"
    "</head>\n"
    "<body>\n"
    "<main>\n"
    "<h1>muster</h1>\n"
    "<p>This server asks who you are.</p>\n"
    "<form method=\"post\" action=\"/login\">\n"
    "<label>Token<input name=\"token\" type=\"password\" autocomplete=\"current-password\" "
    "required autofocus></label>\n"
    "<button>Log in</button>\n"
    "</form>\n"
    "</main>\n"
    "<script>try{"
    "if(location.hash)sessionStorage.setItem(\"muster-link\",location.hash)}catch{}\n"
    "</script>\n"
    "</body>\n"
    "</html>\n";

/// What that page may: its own style and script, by their digests, which a test compares.
inline constexpr std::string_view login_policy =
    "default-src 'none'; "
    "script-src 'sha256-w1h6kVdPcyxVDRSad29/2qtBvWLlgcJGiN9BYjOF/vs='; "
    "style-src 'sha256-8i+61KWlfJopdTPGiMWysQ4iyE5wqT3rSQDAJoD2Ga4='; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

}  // namespace muster::server::http
