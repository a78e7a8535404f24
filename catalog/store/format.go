package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A file has a first line of three words, which never change their meaning:
//
//	dynmcp-listing 1 5f3a9c01
//
// the magic word, the number of the format, and a sum (CRC-32C, in hex) of the rest. In
// this format the rest is a head, one line of JSON, and what the server sent, verbatim:
// the texts whose lengths the head has, each followed by a line feed.
const (
	magic  = "dynmcp-listing"
	format = 1
)

var (
	errNewer   = errors.New("it was written by a newer dynmcp")
	errOlder   = errors.New("it was written by an older dynmcp")
	errCorrupt = errors.New("it is damaged")
	errForeign = errors.New("it is not ours alone")
)

// A head is the part of a listing that every start reads.
type head struct {
	Server       string `json:"server"` // for people who look into the directory
	Protocol     string `json:"protocol,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	Tasks        int    `json:"tasks,omitempty"`
	AsksRoots    bool   `json:"asks_roots,omitempty"`
	Count        int    `json:"count"` // of tools
	OnlyTasks    bool   `json:"only_tasks,omitempty"`
	ForViews     int    `json:"for_views,omitempty"` // of the tools
	Declared     int    `json:"declared,omitempty"`  // abilities plus 1
	Lengths      []int  `json:"lengths"`             // in bytes, see texts

	Unlisted map[catalog.Abilities][]string `json:"unlisted,omitempty"`
	Pages    map[string]string              `json:"pages,omitempty"`
	More     map[string][]json.RawMessage   `json:"more,omitempty"` // lists of extensions, by method
}

// texts returns the parts that are stored verbatim, in the order of the file, tools last.
func texts(l *catalog.Listing) [][]byte {
	return [][]byte{
		l.Capabilities, l.Info, l.Rest, wire.Array(l.Resources), wire.Array(l.Templates), wire.Array(l.Prompts), wire.Array(l.Tools),
	}
}

// elements returns the entries of an array.
func elements(array json.RawMessage) []json.RawMessage {
	var entries []json.RawMessage
	for e := range wire.Elements(array) {
		entries = append(entries, slices.Clip(e))
	}
	return entries
}

// castagnoli makes tables of 8 KB on the first call.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// encode returns the text of a file. An entry that is not JSON is left out: an array cannot
// hold it, and no host is shown it.
func encode(server string, l *catalog.Listing) ([]byte, error) {
	whole := *l
	for _, list := range []*[]json.RawMessage{&whole.Tools, &whole.Prompts, &whole.Resources, &whole.Templates} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(e json.RawMessage) bool { return !wire.Valid(e) })
	}
	whole.More = nil
	for method, list := range l.More {
		whole.AddMore(method, slices.DeleteFunc(slices.Clone(list), func(e json.RawMessage) bool { return !json.Valid(e) }))
	}
	h := head{Server: server, Protocol: l.Protocol, Instructions: l.Instructions, Tasks: int(l.Tasks), AsksRoots: l.AsksRoots, Count: len(whole.Tools), OnlyTasks: onlyTasks(whole.Tools), ForViews: forViews(whole.Tools), Declared: int(l.Declared) + 1, Unlisted: l.Unlisted, Pages: l.Pages, More: whole.More}
	all := texts(&whole)
	for _, text := range all {
		h.Lengths = append(h.Lengths, len(text))
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	body := append(bytes.Join(append([][]byte{line}, all...), []byte{'\n'}), '\n')
	return append(fmt.Appendf(nil, "%s %d %08x\n", magic, format, crc32.Checksum(body, castagnoli())), body...), nil
}

func onlyTasks(tools []json.RawMessage) bool {
	return slices.ContainsFunc(tools, func(t json.RawMessage) bool {
		return bytes.Contains(t, []byte("taskSupport")) && wire.EqualString(wire.Get(t, "execution", "taskSupport"), "required")
	})
}

func forViews(tools []json.RawMessage) (n int) {
	for _, t := range tools {
		if bytes.Contains(t, []byte("visibility")) && entry.IsForViews(wire.Get(t, "_meta")) {
			n++
		}
	}
	return n
}

// decode reads a file. The result refers to text.
func decode(text []byte) (*catalog.Stored, error) {
	first, body, _ := bytes.Cut(text, []byte{'\n'})
	words := strings.Fields(string(first[:min(len(first), 64)]))
	if len(words) != 3 || words[0] != magic {
		return nil, errCorrupt
	}
	switch version, err := strconv.Atoi(words[1]); {
	case err != nil:
		return nil, errCorrupt
	case version > format:
		return nil, errNewer
	case version < format:
		return nil, errOlder
	}
	if sum, err := strconv.ParseUint(words[2], 16, 32); err != nil || uint32(sum) != crc32.Checksum(body, castagnoli()) {
		return nil, errCorrupt
	}
	line, rest, _ := bytes.Cut(body, []byte{'\n'})
	var h head
	if json.Unmarshal(line, &h) != nil {
		return nil, errCorrupt
	}
	var parts [7]json.RawMessage
	if len(h.Lengths) != len(parts) || h.Tasks < int(catalog.NoTasks) || h.Tasks > int(catalog.StatelessTasks) {
		return nil, errCorrupt
	}
	for i, n := range h.Lengths {
		if n < 0 || n >= len(rest) || rest[n] != '\n' {
			return nil, errCorrupt
		}
		if n > 0 {
			parts[i] = rest[:n:n]
		}
		rest = rest[n+1:]
	}
	tools := parts[6]
	return &catalog.Stored{
		Listing: catalog.Listing{
			Protocol: h.Protocol, Instructions: h.Instructions, Tasks: catalog.Tasks(h.Tasks), AsksRoots: h.AsksRoots,
			Declared: catalog.Abilities(h.Declared - 1), Unlisted: h.Unlisted, Pages: h.Pages, More: h.More,
			Capabilities: parts[0], Info: parts[1], Rest: parts[2],
			Resources: elements(parts[3]), Templates: elements(parts[4]), Prompts: elements(parts[5]),
		},
		Count:     h.Count,
		OnlyTasks: h.OnlyTasks,
		ForViews:  h.ForViews,
		ReadTools: func() []json.RawMessage { return elements(tools) },
	}, nil
}
