#!/bin/sh
# Builds FOLDER/traces, which compares worlds of the simulator with the model: extracts Trace.v to
# OCaml, and compiles it with traces.ml.
#
#     sh test/proof/checker.sh FOLDER
#     redlock-sim --seeds 1..100 --actions | FOLDER/traces
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)

for tool in coqc ocamlopt; do
    if ! command -v "$tool" >/dev/null; then
        echo "$tool is missing: apt-get install --no-install-recommends coq ocaml-nox" >&2
        exit 1
    fi
done

mkdir -p "$1"
cp "$here"/*.v "$here/rules.ml" "$here/traces.ml" "$1"
cd "$1"
cat >Extract.v <<'END_OF_FILE'
(* ExtrOcamlBasic maps bool, option, pairs and lists to OCaml's own; nat and Z stay Coq's. *)
Require Import ExtrOcamlBasic.
Require Import Trace.
Extraction "model.ml" qstep qstart grown covers of_token get.
END_OF_FILE
for file in Common Model Invariant Exclusion Majorities Trace Extract; do
    coqc -q "$file.v"
done
ocamlopt -o traces model.mli model.ml rules.ml traces.ml >log 2>&1 || {
    cat log >&2
    exit 1
}
