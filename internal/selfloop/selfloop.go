// Package selfloop prevents a config from reaching itself. The environment of every server that
// dynmcp starts lists the configs that are served above it. A dynmcp among the servers, behind any
// wrapper, refuses a config that is already served, because it would start itself endlessly. The
// environment also lists the configs in the entries above: of configs that name each other, the
// first starts all others.
package selfloop

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Variable is the environment variable that carries a Chain, as JSON.
const Variable = "DYNMCP_LINEAGE"

// MaxDepth is how many runs of dynmcp may be nested, with any configs.
const MaxDepth = 4

// A Run is one dynmcp and the entry of its config that led to the next.
type Run struct {
	Config string   `json:"config"`          // path of the config, or the command that is wrapped
	Digest string   `json:"digest"`          // of what the config starts
	Entry  string   `json:"entry"`           // name of the server that was started
	Names  []string `json:"names,omitempty"` // paths of the configs that its entries are known to serve
}

// maxNames limits the names of one run: a variable has a size limit.
const maxNames = 64

// A Chain is the runs from the outermost on.
type Chain []Run

// Above returns the chain of runs that led to this process.
func Above() Chain {
	var above Chain
	if err := json.Unmarshal([]byte(os.Getenv(Variable)), &above); err != nil {
		return nil // not set, or not by dynmcp
	}
	return above
}

// Refuse returns why a process below the chain must not start a dynmcp that serves config, "" if
// it may. same reports whether two paths lead to one file.
func (c Chain) Refuse(config string, same func(a, b string) bool) string {
	for _, run := range c {
		if same(run.Config, config) {
			return "with a config that is served above"
		}
		if slices.ContainsFunc(run.Names, func(name string) bool { return same(name, config) }) {
			return "with a config that " + run.Config + " above names too"
		}
	}
	if len(c) == MaxDepth-2 {
		return fmt.Sprintf("nested %d deep", MaxDepth)
	}
	return ""
}

// Room returns how many configs that name each other may be served below this process: with it
// and the chain, they make MaxDepth runs.
func (c Chain) Room() int { return max(MaxDepth-1-len(c), 0) }

// Enter returns the chain that ends with this process, which serves config. It is an error if that
// config, by its path or its digest, is already served above, or if the chain is too long.
func Enter(config, digest string) (Chain, error) {
	above := Above()
	chain := append(above, Run{Config: config, Digest: digest})
	for _, run := range above {
		if run.Config == config || run.Digest == digest {
			return nil, fmt.Errorf("the config reaches itself: %s; take %q out of %s", chain, above.last().Entry, above.last().Config)
		}
	}
	if len(chain) >= MaxDepth {
		return nil, fmt.Errorf("dynmcp is nested %d deep: %s; take %q out of %s", len(chain), chain, above.last().Entry, above.last().Config)
	}
	return chain, nil
}

func (c Chain) last() Run { return c[len(c)-1] }

// String shows the chain as a line of text.
func (c Chain) String() string {
	var b strings.Builder
	for i, run := range c {
		b.WriteString(run.Config)
		if i < len(c)-1 {
			fmt.Fprintf(&b, " starts %q, which is ", run.Entry)
		}
	}
	return b.String()
}

// Env returns the environment variable for a server that this process starts as
// entry. names are the configs that entries of its config are known to serve.
func (c Chain) Env(entry string, names []string) string {
	if len(c) == 0 {
		return ""
	}
	child := append(Chain{}, c...)
	last := &child[len(child)-1]
	last.Entry, last.Names = entry, names[:min(len(names), maxNames)]
	text, err := json.Marshal(child)
	if err != nil {
		return "" // strings always marshal
	}
	return Variable + "=" + string(text)
}
