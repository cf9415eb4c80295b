#!/bin/sh
# Makes what docker-compose.yml takes as secrets, in deploy/secrets; what is there stays as it is.
set -eu
cd "$(dirname "$0")/.."
version=${HEADWATER_VERSION:-local}
docker image inspect "headwater-broker:$version" >/dev/null 2>&1 \
    || docker build -f deploy/Dockerfile --target broker -t "headwater-broker:$version" .
mkdir -p deploy/secrets
docker run --rm --network none --user 0:0 -v "$PWD/deploy/secrets:/secrets" \
    "headwater-broker:$version" python /opt/headwater/make_secrets.py /secrets --owner "$(id -u)"
