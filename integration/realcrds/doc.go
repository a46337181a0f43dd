// Package realcrds holds definitions that people install into every cluster, those of
// gateway-api, cert-manager and karpenter, and proves that pawl serves them as they are: it
// takes each one without a word, accepts what its schema accepts, fills in its defaults, and
// refuses what its rules refuse with the reference's message, letter for letter.
//
// What definitions written for a test seldom have is all in here: schemas of 400 KB, hundreds of
// rules, defaults inside defaults, a status with a default, versions that are served and not
// stored, and versions that are neither.
//
// The definitions are files in testdata/PROJECT/crds, to the byte as their project publishes
// them; testdata/PROJECT/README.md says which version that is, where it came from, and under
// which licence. To take another version, replace the files, then that page. What is in
// testdata/PROJECT/valid is pawl's own: a sample of each kind that its definition must accept.
package realcrds
