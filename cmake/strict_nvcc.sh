#!/bin/sh
# Runs a compiler, and fails if ptxas reports that the code is slow although it is correct: registers spilled to memory,
# warpgroup instructions one after another (C7510, C7511, C7515, C7517, C7520), or an ignored setmaxnreg (C7508).
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1
code=$?
cat "$log" >&2
[ $code -eq 0 ] || exit $code
if grep -qE '\(C75(08|10|11|15|17|20)\)|[Ss]pilled to local memory' "$log"; then
  echo "strict_nvcc.sh: ptxas reports slow code, see above" >&2
  exit 1
fi
