//go:build unix

package mcptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// engine is a docker whose containers are files in the directory of the program: run makes one and runs
// its server, and the file goes when the server ends by itself, or by kill. A container ignores SIGTERM, as
// a server does that is the first process of one.
const engine = `#!/bin/sh
state=$(dirname "$0")/containers
case $1 in
kill) rm "$state/$2" ;;
run)
	shift
	while case $1 in -*) true ;; *) false ;; esac; do
		case $1 in --cidfile=*) file=${1#*=} ;; esac
		shift
	done
	[ -e "$file" ] && exit 125
	id=c$$
	: >"$state/$id"
	echo $id >"$file"
	trap '' TERM
	"$@"
	rm "$state/$id" ;;
esac
`

// Engine returns a fake docker. containers returns those that run.
func Engine(t testing.TB) (program string, containers func() []string) {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "containers")
	program = filepath.Join(dir, "docker")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte(engine), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, func() []string {
		all, err := filepath.Glob(filepath.Join(state, "*"))
		if err != nil || strings.Contains(dir, "*") {
			t.Error(err)
		}
		return all
	}
}
