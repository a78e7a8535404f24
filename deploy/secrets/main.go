// Command secrets generates the secrets of the examples in deploy: the cluster key, the token of
// hosts, certificates for NATS, and an account of NATS for dynmcp. It does not overwrite files.
//
// Usage, from the root of a clone, with dynmcp on the PATH or in -dynmcp:
//
//	go -C deploy run ./secrets -out compose/secrets
//	go -C deploy run ./secrets -out kubernetes/example/secrets -names 'nats,*.nats-headless'
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "the `directory` to write to")
	names := flag.String("names", "nats-1,nats-2,nats-3,localhost,127.0.0.1", "names and addresses at which NATS is reached")
	dynmcp := flag.String("dynmcp", "dynmcp", "the `program` that makes the cluster key")
	flag.Parse()
	if *out == "" {
		log.Fatal("secrets: -out is missing")
	}
	if err := write(*out, strings.Split(*names, ","), *dynmcp); err != nil {
		log.Fatal("secrets: ", err)
	}
}

func write(dir string, names []string, dynmcp string) error {
	// Containers run as another user, with the group of the files.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	files := map[string][]byte{"dynmcp.env": []byte("DYNMCP_TOKEN=" + rand.Text() + "\n")}
	key, err := exec.Command(dynmcp, "cluster", "key").Output()
	if err != nil {
		return fmt.Errorf("%s cluster key: %w", dynmcp, err)
	}
	files["cluster.key"] = key
	if err := certificates(files, names); err != nil {
		return err
	}
	if err := accounts(files); err != nil {
		return err
	}
	for name, data := range files {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// certificates adds an authority and a certificate of the nodes of NATS, for clients and for the
// routes between nodes. The key of the authority is not kept: to renew, generate all of them again.
func certificates(files map[string][]byte, names []string) error {
	from, until := time.Now().Add(-time.Hour), time.Now().AddDate(2, 0, 0)
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "NATS of dynmcp"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nats"}, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	files["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	files["nats.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	files["nats.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return nil
}

// accounts adds an operator with two accounts, the system's and one for dynmcp, which may use
// JetStream, and the credentials of a user of dynmcp's account. The part for the nodes is not secret:
// claims signed by the operator, whose key is not kept.
func accounts(files map[string][]byte) error {
	operator, operatorID, err := pair(nkeys.CreateOperator)
	if err != nil {
		return err
	}
	_, systemID, err := pair(nkeys.CreateAccount)
	if err != nil {
		return err
	}
	account, accountID, err := pair(nkeys.CreateAccount)
	if err != nil {
		return err
	}
	user, userID, err := pair(nkeys.CreateUser)
	if err != nil {
		return err
	}
	ours := jwt.NewOperatorClaims(operatorID)
	ours.Name, ours.SystemAccount = "dynmcp", systemID
	operatorJWT, err := ours.Encode(operator)
	if err != nil {
		return err
	}
	system := jwt.NewAccountClaims(systemID)
	system.Name = "system"
	systemJWT, err := system.Encode(operator)
	if err != nil {
		return err
	}
	claims := jwt.NewAccountClaims(accountID)
	claims.Name = "dynmcp"
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	accountJWT, err := claims.Encode(operator)
	if err != nil {
		return err
	}
	who := jwt.NewUserClaims(userID)
	who.Name = "dynmcp"
	userJWT, err := who.Encode(account)
	if err != nil {
		return err
	}
	seed, err := user.Seed()
	if err != nil {
		return err
	}
	if files["nats.creds"], err = jwt.FormatUserConfig(userJWT, seed); err != nil {
		return err
	}
	known := map[string]any{
		"operator":         operatorJWT,
		"system_account":   systemID,
		"resolver":         "MEMORY", // the nodes have the accounts in their config
		"resolver_preload": map[string]string{systemID: systemJWT, accountID: accountJWT},
	}
	// The claims, for the config of a node and as values of the chart.
	for _, name := range slices.Sorted(maps.Keys(known)) {
		value, err := json.Marshal(known[name])
		if err != nil {
			return err
		}
		files["nats-accounts.conf"] = fmt.Appendf(files["nats-accounts.conf"], "%s: %s\n", name, value)
	}
	files["nats-accounts.values.yaml"], err = yaml.Marshal(map[string]any{"config": map[string]any{"merge": known}})
	return err
}

// pair returns a new key and its public key.
func pair(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string, error) {
	key, err := create()
	if err != nil {
		return nil, "", err
	}
	public, err := key.PublicKey()
	return key, public, err
}
