// Command gen writes the JSON Schema of the config document, and the tables of
// its documentation, from the types in package schema. go generate runs it in
// that package's directory.
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
	page := flag.String("docs", "", "the page whose tables to write")
	flag.Parse()
	data, err := generate(".")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, data, 0o666); err != nil {
		log.Fatal(err)
	}
	if *page == "" {
		return
	}
	if err := writeTables(*page, data); err != nil {
		log.Fatal(err)
	}
}

func writeTables(path string, root []byte) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if page, err = withTables(page, root); err != nil {
		return err
	}
	return os.WriteFile(path, page, 0o666)
}
