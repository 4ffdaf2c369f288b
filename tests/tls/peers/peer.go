// A TLS client or server of Go's crypto/tls, for tests/tls/foreign_peers_test.cpp.
//
//	peer client PORT VERSION ALPN CERTIFICATE    connects twice; the second resumes the session
//	peer server PORT VERSION ALPN AUTHORITIES    answers each line reversed, until it is killed
//
// VERSION is 1.2 or 1.3; "-" stands for no ALPN, no certificate, or no verification of clients.
// The working directory has ca.pem, cert.pem and key.pem.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func authorities(path string) *x509.CertPool {
	pem, err := os.ReadFile(path)
	check(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		check(fmt.Errorf("no certificate in %s", path))
	}
	return pool
}

func config(version, alpn string) *tls.Config {
	made := &tls.Config{ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	made.MinVersion = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	made.MaxVersion = made.MinVersion
	if alpn != "-" {
		made.NextProtos = strings.Split(alpn, ",")
	}
	return made
}

func client(port, version, alpn, certificate string) {
	made := config(version, alpn)
	made.RootCAs = authorities("ca.pem")
	if certificate != "-" {
		pair, err := tls.LoadX509KeyPair(certificate, certificate)
		check(err)
		// Also sends a certificate that none of the server's authorities has issued.
		made.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
	}
	for i := 0; i < 2; i++ {
		stream, err := tls.Dial("tcp", "127.0.0.1:"+port, made)
		check(err)
		_, err = stream.Write([]byte("hello\n"))
		check(err)
		got, err := io.ReadAll(stream)
		check(err)
		how := "full"
		if stream.ConnectionState().DidResume {
			how = "resumed"
		}
		fmt.Printf("TLSv%s %s %s", version, how, got)
		stream.Close()
	}
}

func answer(stream net.Conn) {
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		line := lines.Bytes()
		for i, j := 0, len(line)-1; i < j; i, j = i+1, j-1 {
			line[i], line[j] = line[j], line[i]
		}
		if _, err := fmt.Fprintf(stream, "%s\n", line); err != nil {
			return
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Println(err)
	}
}

func server(port, version, alpn, clients string) {
	made := config(version, alpn)
	pair, err := tls.LoadX509KeyPair("cert.pem", "key.pem")
	check(err)
	made.Certificates = []tls.Certificate{pair}
	if clients != "-" {
		made.ClientCAs = authorities(clients)
		made.ClientAuth = tls.RequireAndVerifyClientCert
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:"+port, made)
	check(err)
	fmt.Println("ACCEPT " + listener.Addr().String())
	for {
		stream, err := listener.Accept()
		check(err)
		go answer(stream)
	}
}

func main() {
	run := map[string]func(string, string, string, string){"client": client, "server": server}
	run[os.Args[1]](os.Args[2], os.Args[3], os.Args[4], os.Args[5])
}
