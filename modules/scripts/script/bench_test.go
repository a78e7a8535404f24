package script_test

import (
	"slices"
	"testing"
	"time"
)

// p50 measures the median time of a script in a kept child.
func p50(b *testing.B, source string) {
	p := newPool(b)
	run(b, p, "return 1", echo)
	median(b, func() { run(b, p, source, echo) })
}

func median(b *testing.B, do func()) {
	var all []time.Duration
	for b.Loop() {
		began := time.Now()
		do()
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-p50")
}

func BenchmarkFirstScript(b *testing.B) {
	median(b, func() {
		p := newPool(b)
		run(b, p, "return 1", echo)
		p.Close()
	})
}

func BenchmarkNoCall(b *testing.B) { p50(b, "return [1, 2, 3].map(n => n * 2)") }

func BenchmarkOneCall(b *testing.B) { p50(b, "return await tools.github.list_issues({state: 'open'})") }

func BenchmarkHundredCalls(b *testing.B) {
	p50(b, "let all = []; for (let i = 0; i < 100; i++) all.push(await tools.github.list_issues({page: i})); return all.length")
}
