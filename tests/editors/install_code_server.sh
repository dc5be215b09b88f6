#!/bin/sh
# A real VS Code for tests, from npm, installed once: install_code_server.sh FOLDER NODE, the folder of node and npm
# The package's own installer builds for desktops too; here only the native modules that a server needs are built.
set -eu
VERSION=4.100.3 # the last line for Node 20
folder=$1 node=$(cd "$2" && pwd)
[ -e "$folder/.ready-$VERSION" ] && exit 0

echo "== code-server $VERSION in $folder (a real VS Code for the tests of editors; 300 MB, about a minute)"
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
PATH=$node:$PATH
headers=$(dirname "$(dirname "$(readlink -f "$node/node")")")
if [ -e "$headers/include/node/node.h" ]; then
  export npm_config_nodedir="$headers" # else they are fetched
fi

quietly() {
  "$@" >"$folder/install.log" 2>&1 || { tail -n 30 "$folder/install.log"; echo "failed: $*" >&2; exit 1; }
}
install="npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error"
cd "$folder"
echo '{ "private": true }' >package.json
quietly $install "code-server@$VERSION" node-gyp@11
cd node_modules/code-server/lib/vscode
quietly $install
(cd extensions && quietly $install)
for module in @vscode/spdlog native-watchdog node-pty; do
  (cd "node_modules/$module" && quietly node "$folder/node_modules/.bin/node-gyp" rebuild)
done
ln -sfn node_modules node_modules.asar
(cd bin/remote-cli && ln -sf code-linux.sh code-server)
cd "$folder"
npm_config_build_from_source=true quietly npm rebuild --foreground-scripts argon2
quietly node node_modules/code-server/out/node/entry.js --version
touch ".ready-$VERSION"
