#!/bin/sh
# Make sure that there is a Chromium for the viewer's tests. Set MCPGYM_BROWSER to the path of another one.
set -eu
for browser in "${MCPGYM_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable chrome; do
    if [ -n "$browser" ] && command -v "$browser" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    exec apt-get install -y -qq --no-install-recommends chromium
fi
echo "The viewer's tests need Chromium or Chrome: install one (Debian: sudo apt-get install chromium), or set MCPGYM_BROWSER to its path." >&2
exit 1
