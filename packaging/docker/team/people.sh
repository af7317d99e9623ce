#!/bin/sh
# Makes an account for each address, with a new password: ./people.sh anna@example.com bo@example.com >> dex.yaml
# The passwords are shown once, next to the addresses.
set -eu

hashed() {
	if command -v htpasswd > /dev/null; then
		htpasswd -niBC 10 x
	else
		docker run --rm -i httpd:2.4-alpine htpasswd -niBC 10 x
	fi
}

if [ $# -eq 0 ]; then
	echo "usage: ./people.sh ADDRESS... >> dex.yaml" >&2
	exit 2
fi
for address in "$@"; do
	case $address in
	*[!A-Za-z0-9@._+-]* | *@*@* | @* | *@) known=no ;;
	*@*) known=yes ;;
	*) known=no ;;
	esac
	if [ "$known" = no ]; then
		echo "$address is not an e-mail address; nothing was made for it and those after it" >&2
		exit 2
	fi
	password=$(head -c 15 /dev/urandom | base64 | tr '+/' '-_')
	id=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
	hash=$(printf '%s\n' "$password" | hashed | cut -d: -f2)
	if [ -z "$hash" ]; then
		echo "no hash was made for $address: this needs htpasswd (apache2-utils), or docker" >&2
		exit 1
	fi
	printf '  - { email: "%s", username: "%s", userID: "%s", hash: "%s" }\n' "$address" "${address%@*}" "$id" "$hash"
	printf '%s %s\n' "$address" "$password" >&2
done
