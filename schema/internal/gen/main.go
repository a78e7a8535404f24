// Command gen writes the JSON Schema of the config document from the types in
// package schema. go generate runs it in that package's directory.
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	out := flag.String("o", "dynmcp.schema.json", "the file to write")
	flag.Parse()
	data, err := generate(".")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, data, 0o666); err != nil {
		log.Fatal(err)
	}
}
