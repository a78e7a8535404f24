package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// A report is the result for one server.
type report struct {
	Name    string   `json:"name"`
	Error   string   `json:"error,omitempty"`    // why it could not be compared
	LeftOut []string `json:"left_out,omitempty"` // ignored keys of its entry, which change what hosts see
	Ended   []string `json:"ended,omitempty"`    // who ended a connection, or did not answer
	Eras    []string `json:"eras"`

	NotCompared []string `json:"not_compared,omitempty"` // what was left when the time was over
	Rows        []row    `json:"compared"`
}

// A row counts the results for the answers of one kind.
type row struct {
	Era       string    `json:"era"`
	Surface   string    `json:"surface"`
	Host      string    `json:"host,omitempty"` // "extensions" for the one that declares them
	What      string    `json:"what"`
	Equal     int       `json:"equal"`
	Varies    int       `json:"varies"` // differ only where the server's own answers vary
	ByDesign  int       `json:"by_design"`
	Different int       `json:"different"`
	Bytes     int       `json:"largest"` // bytes of the largest answer
	Findings  []finding `json:"findings,omitempty"`
}

// A finding is an answer that differs.
type finding struct {
	Name        string       `json:"name"`
	Reason      string       `json:"reason,omitempty"` // why the difference is intended
	Differences []difference `json:"differences,omitempty"`
}

func (r *report) failed() bool {
	return r.Error != "" || slices.ContainsFunc(r.Rows, func(r row) bool { return r.Different > 0 })
}

// noteEnd notes who ended a connection, or did not answer, unless the comparison is over.
func (r *report) noteEnd(ctx context.Context, where string, lost error) {
	if lost == nil || ctx.Err() != nil {
		return
	}
	if line := where + ": " + cli.Secrets.String(lost.Error()); !slices.Contains(r.Ended, line) {
		r.Ended = append(r.Ended, line)
	}
}

// variations are the differences between repeated answers of the server itself.
type variations map[place][]difference

func (v variations) add(a, b *run) {
	for _, at := range placesOf(a, b) {
		v[at] = append(v[at], differences(a.seen[at], b.seen[at])...)
	}
}

// placesOf returns the places of a, followed by those that only b has.
func placesOf(a, b *run) []place {
	all := slices.Clone(a.places)
	for _, at := range b.places {
		if a.seen[at] == nil {
			all = append(all, at)
		}
	}
	return all
}

// rowsOf compares the answers of a run behind dynmcp with those of a direct run.
func rowsOf(direct, behind *run, varying variations) (rows []row) {
	for _, at := range placesOf(direct, behind) {
		if behind.surface != schema.ExposeDirect && at.what != tools && at.what != bigNumber && at.what != progress {
			continue
		}
		i := slices.IndexFunc(rows, func(r row) bool { return r.What == at.what })
		if i < 0 {
			i, rows = len(rows), append(rows, row{Surface: behind.surface, What: at.what})
		}
		rows[i].judge(at.name, direct.seen[at], behind.seen[at], varying[at])
	}
	return rows
}

// judge compares two answers and counts the result in the row.
func (r *row) judge(name string, a, b []byte, varying []difference) {
	r.Bytes = max(r.Bytes, len(a))
	found := without(differences(a, b), varying)
	left, reasons := divide(r.Surface, r.What, name, found)
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

// write prints the report as a table, followed by the differences.
func (r *report) write(out *terminal.Writer) {
	out.Heading(r.Name)
	if r.Error != "" {
		out.Printf("%s\n", terminal.OneLine(r.Error))
	}
	if len(r.NotCompared) > 0 {
		out.Printf("not compared: %s\n", strings.Join(r.NotCompared, ", "))
	}
	for _, line := range r.Ended {
		out.Printf("%s\n", terminal.OneLine(line))
	}
	if len(r.LeftOut) > 0 {
		out.Printf("compared without its %s\n", strings.Join(r.LeftOut, ", "))
	}
	table := terminal.Table{Header: []string{"ERA", "SURFACE", "COMPARED", "EQUAL", "VARIES", "BY DESIGN", "DIFFERENT", "LARGEST"}, Right: 3}
	for _, row := range r.Rows {
		cells := []string{row.Era, row.of(), row.What}
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
			} else if line := fmt.Sprintf("by design: %s, %s: %s", row.What, row.of(), f.Reason); !said[line] {
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

// of says for which surface, and which host, the row is.
func (r *row) of() string {
	if r.Host != "" {
		return r.Surface + " (" + r.Host + ")"
	}
	return r.Surface
}

// maxShown limits the differences that are printed for one answer.
const maxShown = 5

func (f *finding) write(out *terminal.Writer, of row) {
	out.Paint(terminal.Red, "different")
	out.Printf(": %s, %s, %s: %s\n", of.Era, of.of(), of.What, terminal.OneLine(f.Name))
	for i, d := range f.Differences {
		if i == maxShown {
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
