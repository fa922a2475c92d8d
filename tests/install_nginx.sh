#!/bin/sh
# Make sure that there is an nginx for the tests of deploy/; where none can be installed, those that need it are skipped.
set -eu
if command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    # it is not to be started as a service
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d.mcpgym
    chmod +x /usr/sbin/policy-rc.d.mcpgym
    [ -e /usr/sbin/policy-rc.d ] || ln -s policy-rc.d.mcpgym /usr/sbin/policy-rc.d
    apt-get install -y -qq --no-install-recommends nginx-light || echo "nginx could not be installed" >&2
    [ "$(readlink /usr/sbin/policy-rc.d || true)" != policy-rc.d.mcpgym ] || rm /usr/sbin/policy-rc.d
    rm -f /usr/sbin/policy-rc.d.mcpgym
    exit 0
fi
echo "The samples for nginx are checked where nginx is installed (Debian: sudo apt-get install nginx-light)." >&2
