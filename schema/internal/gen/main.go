// Command gen writes the JSON Schema of the config document, and the keys in
// its documentation, from the types in package schema. go generate runs it in
// that package's directory.
package main

import (
	"errors"
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	out := flag.String("o", "dynmcp.schema.json", "the file to write")
	docs := flag.String("docs", "../docs/config.md", "the page whose lists of keys to write")
	flag.Parse()
	if err := write(*out, *docs); err != nil {
		log.Fatal(err)
	}
}

func write(out, docs string) error {
	data, err := generate(".")
	if err != nil {
		return err
	}
	page, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	if page, err = withKeys(page, data); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(out, data, 0o666), os.WriteFile(docs, page, 0o666))
}
