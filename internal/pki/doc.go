// Package pki keeps the keys and certificates of a server: who it is to its clients, and
// how its administrator proves who they are.
//
// # What there is
//
// In a data folder, all of it made on first start, and all keys on P-256:
//
//	DATA/pki/ca.pem       the authority: it signs the two below, and nothing else is trusted
//	DATA/pki/ca.crt       its certificate alone, to be handed to others
//	DATA/pki/serving.pem  what clients are shown: localhost, 127.0.0.1, ::1 and [Options.Hosts]
//	DATA/pki/admin.pem    the administrator: CN [AdminName], O system:masters (rule H197)
//	DATA/pki/accounts.key the key that signs tokens of service accounts (rule H198)
//	DATA/admin-token      a bearer token for the same person
//
// A .pem holds a certificate and its private key together, so that there is no moment at
// which the one is on disk without the other. Every file is 0600, the folders 0700, and
// a file is replaced by renaming a complete one over it.
//
// Without a folder nothing is written; that is for tests, and takes about a millisecond.
//
// # Renewal
//
// What has less than a third of its life left is renewed: by [Open], by [PKI.Run], and at
// a TLS handshake that would otherwise show it. The authority is renewed under its own key,
// so that whoever trusts the old certificate still trusts what is signed after it.
// Kubeconfigs written by [PKI.WriteKubeconfig] are rewritten when anything in them was.
// The serving certificate is also made anew when it is asked to cover other names.
//
// # Damage
//
// A file that cannot be read, or that belongs to some other authority, is an [Error] that
// says what to do. It is never replaced: the wrong guess would lock people out for good.
// Removing serving.pem, admin.pem, accounts.key or admin-token is how one asks for a new one;
// a missing ca.pem beside files that it signed is damage.
//
// Keys and tokens come from crypto/rand and from nowhere else.
package pki
