package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// A report is what was found about a server.
type report struct {
	Name    string   `json:"name"`
	Error   string   `json:"error,omitempty"`    // why it could not be compared
	LeftOut []string `json:"left_out,omitempty"` // keys of its entry that change what hosts see
	Eras    []string `json:"eras"`
	Rows    []row    `json:"compared"`
}

// A row says how answers of one kind compare.
type row struct {
	Era       string    `json:"era"`
	Surface   string    `json:"surface"`
	What      string    `json:"what"`
	Equal     int       `json:"equal"`
	Varies    int       `json:"varies"` // equal but for what varies by itself
	ByDesign  int       `json:"by_design"`
	Different int       `json:"different"`
	Bytes     int       `json:"largest"` // bytes of the largest answer
	Findings  []finding `json:"findings,omitempty"`
}

// A finding is an answer that differs.
type finding struct {
	Name        string       `json:"name"`
	Reason      string       `json:"reason,omitempty"` // why that is so by design
	Differences []difference `json:"differences,omitempty"`
}

func (r *report) failed() bool {
	bad := r.Error != ""
	for _, row := range r.Rows {
		bad = bad || row.Different > 0
	}
	return bad
}

// digest tells texts apart that are not shown.
func digest(text []byte) uint32 {
	h := fnv.New32a()
	h.Write(text)
	return h.Sum32()
}

// keys name observations; what comes several times is counted.
func keys(seen []observation) map[string][]byte {
	all := map[string][]byte{}
	for i, n := 0, map[string]int{}; i < len(seen); i++ {
		key := seen[i].what + "\x00" + seen[i].name
		n[key]++
		all[key+"\x00"+strconv.Itoa(n[key])] = seen[i].value
	}
	return all
}

// variations are the places at which answers of the server itself differ, by key.
type variations map[string][]difference

func (v variations) add(a, b *run) {
	other := keys(b.seen)
	for key, value := range keys(a.seen) {
		v[key] = append(v[key], differences(value, other[key])...)
	}
	for key := range other {
		if v[key] == nil && keys(a.seen)[key] == nil {
			v[key] = []difference{{}}
		}
	}
}

// rowsOf compares what a side behind dynmcp answered with what the server did.
func rowsOf(direct, behind *run, varying variations) (rows []row) {
	at := map[string]int{}
	rowOf := func(what string) *row {
		if _, ok := at[what]; !ok {
			at[what] = len(rows)
			rows = append(rows, row{Surface: behind.surface, What: what})
		}
		return &rows[at[what]]
	}
	one, two, n := keys(direct.seen), keys(behind.seen), map[string]int{}
	judge := func(o observation) {
		if behind.surface != schema.ExposeDirect && o.what != tools && o.what != bigNumber && o.what != progress {
			return
		}
		key := o.what + "\x00" + o.name
		n[key]++
		key += "\x00" + strconv.Itoa(n[key])
		rowOf(o.what).judge(o.name, one[key], two[key], varying[key], behind.surface)
	}
	for _, o := range direct.seen {
		judge(o)
	}
	for _, o := range behind.seen {
		if _, known := one[o.what+"\x00"+o.name+"\x001"]; !known {
			judge(o)
		}
	}
	return rows
}

// judge adds an answer to a row.
func (r *row) judge(name string, a, b []byte, varying []difference, surface string) {
	r.Bytes = max(r.Bytes, len(a))
	found := without(differences(a, b), varying)
	left, reasons := divide(surface, r.What, name, found)
	f := finding{Name: cli.Secrets.String(name), Differences: left}
	switch {
	case len(left) > 0:
		r.Different++
		r.Findings = append(r.Findings, f)
	case len(found) > 0:
		r.ByDesign++
		f.Reason = strings.Join(slices.Compact(reasons), "; ")
		r.Findings = append(r.Findings, f)
	case !bytes.Equal(a, b):
		r.Varies++
	default:
		r.Equal++
	}
}

// write prints a report as tables, and what differs.
func (r *report) write(out *terminal.Writer) {
	out.Heading(r.Name)
	if r.Error != "" {
		out.Printf("%s\n", terminal.OneLine(r.Error))
	}
	if len(r.LeftOut) > 0 {
		out.Printf("compared without its %s\n", strings.Join(r.LeftOut, ", "))
	}
	table := terminal.Table{Header: []string{"ERA", "SURFACE", "COMPARED", "EQUAL", "VARIES", "BY DESIGN", "DIFFERENT", "LARGEST"}, Right: 3}
	for _, row := range r.Rows {
		cells := []string{row.Era, row.Surface, row.What}
		for _, n := range []int{row.Equal, row.Varies, row.ByDesign, row.Different, row.Bytes} {
			cells = append(cells, strconv.Itoa(n))
		}
		table.Rows = append(table.Rows, cells)
	}
	if len(table.Rows) > 0 {
		table.Write(out)
	}
	said := map[string]bool{}
	for _, row := range r.Rows {
		for _, f := range row.Findings {
			if f.Reason == "" {
				f.write(out, row)
			} else if line := fmt.Sprintf("by design: %s, %s: %s", row.What, row.Surface, f.Reason); !said[line] {
				said[line] = true
				out.Printf("%s\n", line)
			}
		}
	}
	if !r.failed() {
		out.Paint(terminal.Green, "the same")
		out.Printf("\n")
	}
}

// mostShown bounds the places that are shown of one answer.
const mostShown = 5

func (f *finding) write(out *terminal.Writer, of row) {
	out.Paint(terminal.Red, "different")
	out.Printf(": %s, %s, %s: %s\n", of.Era, of.Surface, of.What, terminal.OneLine(f.Name))
	for i, d := range f.Differences {
		if i == mostShown {
			out.Printf("  and %d more\n", len(f.Differences)-i)
			break
		}
		out.Printf("  %s: %s\n", terminal.OneLine(cli.Secrets.String(cmp.Or(d.Path, "/"))), d.What)
		for _, side := range [][2]string{{"direct", d.Direct}, {"behind", d.Behind}} {
			if side[1] != "" {
				out.Printf("    %s  %s\n", side[0], terminal.OneLine(side[1]))
			}
		}
	}
}
