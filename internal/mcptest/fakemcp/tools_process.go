package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Tools that show or change the process.

func runBig(_ *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct{ Bytes int }{1 << 20}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	return textResult(strings.Repeat("x", a.Bytes), ""), nil
}

func runEnv(_ *call, args json.RawMessage) (json.RawMessage, error) {
	name, err := nameOf(args)
	if err != nil {
		return nil, err
	}
	value, ok := os.LookupEnv(name)
	return textResult(value, fmt.Sprintf(`,"structuredContent":{"set":%t}`, ok)), nil
}

func runPid(*call, json.RawMessage) (json.RawMessage, error) {
	return textResult(strconv.Itoa(os.Getpid()), ""), nil
}

func runCwd(*call, json.RawMessage) (json.RawMessage, error) {
	dir, err := os.Getwd()
	return textResult(dir, ""), err
}

func runArgs(*call, json.RawMessage) (json.RawMessage, error) {
	args, err := json.Marshal(os.Args)
	return textResult(string(args), ""), err
}

func runHeaders(c *call, _ json.RawMessage) (json.RawMessage, error) {
	headers, err := json.Marshal(c.header)
	return textResult(string(headers), ""), err
}

func runStderr(_ *call, args json.RawMessage) (json.RawMessage, error) {
	var a struct{ Text string }
	err := decode(args, &a)
	fmt.Fprintln(os.Stderr, a.Text)
	return textResult("written", ""), err
}

func runCrash(c *call, _ json.RawMessage) (json.RawMessage, error) {
	c.peer.fake.exit(3, "crash")
	return nil, errSilent
}

// runSpawn starts a child that outlives the fake unless the whole process tree is killed, and returns
// its pid.
func runSpawn(c *call, args json.RawMessage) (json.RawMessage, error) {
	a := struct {
		Mode   string `json:"mode"`
		Setsid bool   `json:"setsid"`
		Env    string `json:"env"`
	}{Mode: "plain"}
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	pid, err := c.peer.fake.spawn(a.Mode, a.Setsid, a.Env)
	return textResult(strconv.Itoa(pid), ""), err
}

// spawn starts this program again as an idle child, which keeps standard error open like the children
// of real servers.
func (f *fake) spawn(mode string, ownSession bool, env string) (int, error) {
	cmd := exec.Command(os.Args[0], "-idle", mode, "-max-life", f.cfg.maxLife.String(), "-ledger", f.cfg.ledger)
	cmd.Stderr = os.Stderr
	cmd.Env = os.Environ()
	if env != "" {
		cmd.Env = append(cmd.Env, env)
	}
	if ownSession {
		setsid(cmd)
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	f.ledger.add("child %d", cmd.Process.Pid)
	// Without Wait the child would stay a zombie.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, nil
}
