package hosts

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

func gridctl(r *rewriting) {
	transport := r.text("transport")
	switch {
	case r.pypi():
	case r.members["source"] != nil:
		r.problem = "it is built of its source; build it, and add its command with dynmcp add NAME -- COMMAND"
	case r.members["openapi"] != nil:
		r.problem = "it makes tools of an OpenAPI document, for which there is no counterpart"
	case r.members["image"] != nil && transport != "stdio":
		r.problem = "its container serves HTTP; start it, and add its address with dynmcp add NAME --url ADDRESS"
	case r.members["image"] != nil:
		r.container()
	case r.members["ssh"] != nil:
		r.ssh()
	default:
		r.local()
	}
	if transport == "sse" && r.members["url"] != nil {
		r.members["type"] = transport
	}
	r.authorize(r.object("auth"))
	if r.members["pin_schemas"] == false {
		r.note(`its pin_schemas is not taken over; "pins": "off" is the same`)
	}
	r.drop("name", "image", "ssh", "source", "openapi", "port", "pin_schemas", "ready_timeout", "ping_timeout", "network", "build_args")
}

// authorize translates the auth object of gridctl.
func (r *rewriting) authorize(auth map[string]any) {
	switch auth["type"] {
	case "bearer":
		r.header("Authorization", fmt.Sprint("Bearer ", auth["token"]))
	case "header":
		r.header(fmt.Sprint(auth["header"]), fmt.Sprint(auth["value"]))
	case "oauth":
		r.login(auth, "client_id", "client_secret", "scopes")
	}
}

// pypi translates a source of type pypi into a uvx command, and reports whether it was one.
// gridctl builds a container from the package.
func (r *rewriting) pypi() bool {
	source, _ := r.members["source"].(map[string]any)
	name, _ := source["package"].(string)
	version, _ := source["ref"].(string)
	if source["type"] != "pypi" || name == "" || version == "" {
		return false
	}
	args := []any{name + "@" + version}
	if command, _ := r.members["command"].([]any); len(command) > 0 {
		args = append([]any{"--from", name + "==" + version}, command...)
	}
	r.members["command"], r.members["args"] = "uvx", args
	r.note(`it runs in a container there; "sandbox": true limits what a program may do`)
	return true
}

// local makes the path of the program absolute. In gridctl it is relative to the file.
func (r *rewriting) local() {
	command, _ := r.members["command"].([]any)
	if len(command) == 0 {
		return
	}
	program, _ := command[0].(string)
	if !strings.Contains(program, "/") || strings.HasPrefix(program, "~") || filepath.IsAbs(program) {
		return
	}
	if full, err := filepath.Abs(filepath.Join(r.dir, program)); err == nil {
		command[0] = full
	}
}

// container sets the command that runs the image. Variables are passed by name, so that no
// secret is on a command line.
func (r *rewriting) container() {
	args := []any{"run", "-i", "--rm"}
	env, _ := r.members["env"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		args = append(args, "-e", name)
	}
	command, _ := r.members["command"].([]any)
	if len(command) > 0 {
		args, command = append(args, "--entrypoint", command[0]), command[1:]
	}
	r.members["args"] = append(append(args, r.members["image"]), command...)
	r.members["command"] = "docker"
}

// ssh sets the command that runs the entry's command on another machine.
func (r *rewriting) ssh() {
	to := r.object("ssh")
	args := []any{"-T", "-o", "StrictHostKeyChecking=accept-new"}
	for _, option := range []struct{ key, flag string }{{"port", "-p"}, {"identityFile", "-i"}, {"jumpHost", "-J"}} {
		if value, ok := to[option.key]; ok {
			args = append(args, option.flag, fmt.Sprint(value))
		}
	}
	if file, ok := to["knownHostsFile"]; ok {
		args[2] = "StrictHostKeyChecking=yes"
		args = append(args, "-o", fmt.Sprint("UserKnownHostsFile=", file))
	}
	command, _ := r.members["command"].([]any)
	if r.members["env"] != nil {
		r.note("ssh passes none of its variables; set them on %v", to["host"])
		r.drop("env")
	}
	r.members["args"] = append(append(args, fmt.Sprintf("%v@%v", to["user"], to["host"])), command...)
	r.members["command"] = "ssh"
}
