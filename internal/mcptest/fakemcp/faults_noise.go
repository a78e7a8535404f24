package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// noiseFaults write excessive output.
var noiseFaults = []fault{
	{name: "junk", doc: "print ARG (200000) lines that are no messages on stdout before the answer", answer: junk},
	{name: "stderr-flood", doc: "write ARG (200 MiB) bytes on stderr, without a line's end, before the answer", answer: stderrFlood},
	{name: "noisy-exit-discover", doc: "write 6 KB on stderr and exit with status 4 when asked for server/discover", on: "server/discover", request: noisyExit},
	{name: "noisy-hang-discover", doc: "write 6 KB on stderr and never answer server/discover", on: "server/discover", request: noisyHang},
}

// junk writes line by line, so that messages of other calls come between.
func junk(c *call, msg []byte, arg string) {
	kinds := []string{"DEBUG still at it\n", "{not json\n", "{\"progress\":7}\n", "\x00\xff\xfe\n"}
	for n := range number(arg, 200_000) {
		c.peer.fake.out.raw([]byte(kinds[n%len(kinds)]))
	}
	c.send(msg)
}

func stderrFlood(c *call, msg []byte, arg string) {
	piece := bytes.Repeat([]byte("x"), 64<<10)
	for left := number(arg, 200<<20); left > 0; left -= len(piece) {
		_, _ = os.Stderr.Write(piece[:min(left, len(piece))])
	}
	fmt.Fprintln(os.Stderr, "\nfakemcp: that was all")
	c.send(msg)
}

func sixKilobytes() { fmt.Fprint(os.Stderr, strings.Repeat("Traceback: no server/discover\n", 205)) }

func noisyExit(c *call, _ string) bool {
	sixKilobytes()
	return exitOn(c, "")
}

func noisyHang(c *call, _ string) bool {
	sixKilobytes()
	return hangOn(c, "")
}
