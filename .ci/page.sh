# Of `.ci/run`, which sources it: the gate of the live page.

# Chromium takes some 680 MB and 20 s to install; where that cannot be, the gate is skipped.
gate_page() {
  building tools/dev setup page || skip "there is no Chromium"
  tools/dev page
}
