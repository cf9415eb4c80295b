#!/bin/sh
# Takes all brokers to the image that is there now, one container at a time: the next is not touched
# before the one made anew takes events. `sh deploy/update.sh city pass` does so with these services.
set -eu
cd "$(dirname "$0")/.."
compose=${COMPOSE:-docker compose}
for service in ${*:-city broker pass hut}; do
    for old in $($compose ps -q "$service"); do
        count=$($compose ps -q "$service" | wc -l)
        docker stop --time 30 "$old" >/dev/null
        docker rm "$old" >/dev/null
        $compose up -d --no-deps --no-recreate --no-build --scale "$service=$count" "$service"
        for new in $($compose ps -q "$service"); do
            tries=120
            until docker exec "$new" headwater health >/dev/null 2>&1; do
                tries=$((tries - 1))
                [ "$tries" -gt 0 ] || { echo "$service does not become healthy" >&2; exit 1; }
                sleep 1
            done
        done
    done
done
