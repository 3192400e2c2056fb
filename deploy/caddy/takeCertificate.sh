#!/bin/sh
# Copies the newest certificate that Caddy has for NAME to cert.pem and key.pem in FOLDER, for the user OWNER (uid or uid:gid).
# usage: takeCertificate.sh NAME STORAGE FOLDER OWNER [SECONDS]   SECONDS repeats the check at that interval
set -eu
name=$1 storage=$2 folder=$3 owner=$4 every=${5:-}

take() {
  certificate=$(ls -t "$storage"/certificates/*/"$name/$name.crt" 2>/dev/null | head -n 1)
  if [ -z "$certificate" ]; then
    echo "Caddy has no certificate for $name yet: $storage" >&2
    return 1
  fi
  key=${certificate%.crt}.key
  if cmp -s "$certificate" "$folder/cert.pem" && cmp -s "$key" "$folder/key.pem"; then return 0; fi
  mkdir -p "$folder" && chown "$owner" "$folder" || return 1
  # After a rename nobody reads half of a file. The listener waits while key and certificate do not match.
  for file in key cert; do
    if [ "$file" = key ]; then from=$key; else from=$certificate; fi
    # `set -e` has no effect in `take || true`, and a full disk must not replace the key by half of one.
    (umask 077 && cat "$from" > "$folder/$file.new") || return 1
    chown "$owner" "$folder/$file.new" && mv "$folder/$file.new" "$folder/$file.pem" || return 1
  done
  echo "took the certificate for $name"
}

if [ -z "$every" ]; then
  take
  exit
fi
while true; do
  take || true
  sleep "$every"
done
