// Command sbom writes the software bill of materials of a Go binary, from its build information, in
// CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/). The same binary gives the same bytes, without
// a time or serial number.
//
// Usage: sbom -licences FILE -o FILE BINARY
package main

import (
	"debug/buildinfo"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component  component  `json:"component"`
	Properties []property `json:"properties"`
}

type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref"`
	Name     string          `json:"name"`
	Version  string          `json:"version,omitempty"`
	Licences []licenceChoice `json:"licenses,omitempty"`
	PURL     string          `json:"purl"`
}

type licenceChoice struct {
	Licence licence `json:"license"`
}

type licence struct {
	ID string `json:"id"` // of SPDX
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	licences := flag.String("licences", "", "`file` of lines with module, version and SPDX licence")
	out := flag.String("o", "", "`file` to write")
	flag.Parse()
	if err := run(*licences, *out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(licences, out, binary string) error {
	known, err := readLicences(licences)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	doc := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	doc.Metadata.Component = module("application", info.Main.Path, info.Main.Version, "MIT")
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.time":
			doc.Metadata.Properties = append(doc.Metadata.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	doc.Components = append(doc.Components, module("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause"))
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		id := known[dep.Path+" "+dep.Version]
		if id == "" {
			return fmt.Errorf("the licence of %s %s is unknown", dep.Path, dep.Version)
		}
		doc.Components = append(doc.Components, module("library", dep.Path, dep.Version, id))
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(data, '\n'), 0o666)
}

func module(kind, path, version, id string) component {
	purl := "pkg:golang/" + path
	if version != "" {
		purl += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return component{kind, purl, path, version, []licenceChoice{{licence{id}}}, purl}
}

// readLicences returns the licences by "module version".
func readLicences(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, row := range rows {
		if len(row) != 3 {
			return nil, errors.New("want module, version and licence in " + path)
		}
		known[row[0]+" "+row[1]] = row[2]
	}
	return known, nil
}
