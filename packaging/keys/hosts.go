package keys

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/hostfile"
)

// hostsPage is the page with the tables of hosts.
const hostsPage = "docs/hosts.md"

// withHosts returns the page with its tables made from the table of hosts: their files, and the keys of
// their entries.
func withHosts(page []byte) ([]byte, error) {
	var files, keys bytes.Buffer
	files.WriteString("\n| host | files |\n|---|---|\n")
	for _, h := range hostfile.All {
		var names []string
		for _, pattern := range slices.Concat(h.Project, h.User) {
			names = append(names, "`"+placeOf(pattern)+"`")
		}
		if names == nil {
			names = []string{"by its content"}
		}
		row(&files, "`"+h.Name+"` ("+h.Title+")", "", names)
	}
	read, left := hostfile.KeysByMeaning()
	keys.WriteString("\nWhat is not read is named in a warning.\n\n| they write | it is read as |\n|---|---|\n")
	for _, to := range slices.Sorted(maps.Keys(read)) {
		row(&keys, "", "`"+to+"`", codes(read[to]))
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		row(&keys, "", "nothing: "+why, codes(left[why]))
	}
	page, err := between(page, "files", files.Bytes())
	if err != nil {
		return nil, err
	}
	return between(page, "keys", keys.Bytes())
}

// between replaces what stands between the lines for a table of hosts.
func between(page []byte, name string, table []byte) ([]byte, error) {
	begin := []byte("<!-- go generate ./cmd/dynmcp writes these " + name + ", from schema/hostfile. -->\n")
	before, rest, found := bytes.Cut(page, begin)
	_, after, ends := bytes.Cut(rest, []byte(listsEnd))
	if !found || !ends {
		return nil, errors.New(hostsPage + " lacks the lines around its " + name)
	}
	return slices.Concat(before, begin, table, []byte("\n"+listsEnd), after), nil
}

// row writes a row of a table whose first or last cell is items, and further rows where they are long.
func row(b *bytes.Buffer, first, last string, items []string) {
	for i := 0; i < len(items); {
		n := 1
		for i+n < len(items) && len(strings.Join(items[i:i+n+1], ", ")) < 150-max(len(first), len(last)) {
			n++
		}
		text := strings.Join(items[i:i+n], ", ")
		if first != "" {
			fmt.Fprintf(b, "| %s | %s |\n", first, text)
			first = "the same"
		} else {
			fmt.Fprintf(b, "| %s | %s |\n", text, last)
			last = "the same"
		}
		i += n
	}
}

func codes(keys []string) (all []string) {
	for _, key := range keys {
		all = append(all, "`"+key+"`")
	}
	return all
}

var variable = regexp.MustCompile(`\$\{(\w+)(?::-([^}]*))?\}`)

// placeOf writes the place of a file for people: a variable with a default is the default.
func placeOf(pattern string) string {
	return variable.ReplaceAllStringFunc(pattern, func(ref string) string {
		m := variable.FindStringSubmatch(ref)
		if m[2] == "" {
			return "$" + m[1]
		}
		return m[2]
	})
}
