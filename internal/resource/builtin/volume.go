package builtin

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// mountOptionsAnnotation is where the options of a mount were before there was a field for them.
const mountOptionsAnnotation = "volume.beta.kubernetes.io/mount-options"

// driverNameMax is how long the name of a storage driver may be.
const driverNameMax = 63

// volumes is what holds for persistent volumes (rule B67). The server knows when a volume came to be in
// its first phase; later phases are whoever's that writes them, and so is their time.
var volumes = rules[*corev1.PersistentVolume]{
	policy: registry.Policy{UnconditionalUpdate: true, ReturnDeleted: true},
	spec:   func(v, from *corev1.PersistentVolume) { v.Spec = from.Spec },
	status: func(v, from *corev1.PersistentVolume) { v.Status = from.Status },
	defaults: func(v *corev1.PersistentVolume) {
		s := &v.Spec
		or(&v.Status.Phase, corev1.VolumePending)
		or(&s.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		orNew(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(s.Capacity)
		fillInSource(&s.PersistentVolumeSource)
	},
	born: func(v *corev1.PersistentVolume) { v.Status.LastPhaseTransitionTime = v.CreationTimestamp.DeepCopy() },
	wrong: func(v *corev1.PersistentVolume) field.ErrorList {
		errs := append(wrongFinalizers(v), wrongVolume(&v.Spec)...)
		if _, said := v.Annotations[mountOptionsAnnotation]; said && !mountable(&v.Spec.PersistentVolumeSource) {
			path := field.NewPath("metadata", "annotations", mountOptionsAnnotation)
			errs = append(errs, field.Forbidden(path, "may not specify mount options for this volume type"))
		}
		return errs
	},
	wrongAfter: wrongVolumeAfter,
	warn: func(v *corev1.PersistentVolume) (told []string) {
		for _, old := range []struct{ annotation, why string }{
			{corev1.BetaStorageClassAnnotation, `deprecated since v1.8; use "storageClassName" attribute instead`},
			{mountOptionsAnnotation, `deprecated since v1.31; use "mountOptions" attribute instead`},
		} {
			if _, said := v.Annotations[old.annotation]; said {
				told = append(told, fmt.Sprintf("metadata.annotations[%s]: %s", old.annotation, old.why))
			}
		}
		if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
			told = append(told, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
		}
		return told
	},
}

// keepPhaseTime keeps the time of a phase as long as the phase, if a write of the status leaves it out. That of
// another phase says nothing of a new one.
func keepPhaseTime(v, old *corev1.PersistentVolume) {
	is, was := &v.Status, &old.Status
	switch {
	case is.Phase == was.Phase && is.LastPhaseTransitionTime == nil:
		is.LastPhaseTransitionTime = was.LastPhaseTransitionTime.DeepCopy()
	case is.Phase != was.Phase && is.LastPhaseTransitionTime.Equal(was.LastPhaseTransitionTime):
		is.LastPhaseTransitionTime = nil
	}
}

func volumeKinds() []Kind {
	return []Kind{
		define(Kind{
			Version: "v1", Kind: "PersistentVolume", Plural: "persistentvolumes", Singular: "persistentvolume",
			ShortNames: []string{"pv"}, Revision: 1, Subresources: []Subresource{statusDoor(volumes, keepPhaseTime)},
		}, volumes, nil),
		define(Kind{
			Version: "v1", Kind: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", Singular: "persistentvolumeclaim",
			ShortNames: []string{"pvc"}, Revision: 1, Subresources: []Subresource{statusDoor(volumeClaims)},
		}, volumeClaims, nil),
	}
}

// fillInSource fills in what some kinds of storage leave out.
func fillInSource(s *corev1.PersistentVolumeSource) {
	switch {
	case s.HostPath != nil:
		orNew(&s.HostPath.Type, corev1.HostPathUnset)
	case s.ISCSI != nil:
		or(&s.ISCSI.ISCSIInterface, "default")
	case s.RBD != nil:
		or(&s.RBD.RBDPool, "rbd")
		or(&s.RBD.RadosUser, "admin")
		or(&s.RBD.Keyring, "/etc/ceph/keyring")
	case s.AzureDisk != nil:
		orNew(&s.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		orNew(&s.AzureDisk.FSType, "ext4")
		orNew(&s.AzureDisk.ReadOnly, false)
		orNew(&s.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	case s.ScaleIO != nil:
		or(&s.ScaleIO.StorageMode, "ThinProvisioned")
		or(&s.ScaleIO.FSType, "xfs")
	}
}

// mountable says whether storage of this kind is mounted with options.
func mountable(s *corev1.PersistentVolumeSource) bool {
	with := []string{
		"gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
		"azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
	}
	return slices.ContainsFunc(sourcesOf(s), func(name string) bool { return slices.Contains(with, name) })
}

// sourcesOf names the kinds of storage that s speaks of, as JSON does.
func sourcesOf(s *corev1.PersistentVolumeSource) (names []string) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

var (
	accessModes = []corev1.PersistentVolumeAccessMode{
		corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
	}
	volumeModes     = []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}
	reclaimPolicies = []corev1.PersistentVolumeReclaimPolicy{
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain,
	}
	hostPathTypes = []corev1.HostPathType{
		corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
		corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
	}
)

func wrongVolume(s *corev1.PersistentVolumeSpec) field.ErrorList {
	errs := wrongModes(s.AccessModes, specPath.Child("accessModes"), "")
	capacity := specPath.Child("capacity")
	if len(s.Capacity) == 0 {
		errs = append(errs, field.Required(capacity, ""))
	}
	if size, said := s.Capacity[corev1.ResourceStorage]; !said || len(s.Capacity) > 1 {
		errs = append(errs, field.NotSupported(capacity, s.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	} else {
		errs = append(errs, notPositive(size, capacity.Key(string(corev1.ResourceStorage)))...)
	}
	errs = append(errs, oneOf(s.PersistentVolumeReclaimPolicy, specPath.Child("persistentVolumeReclaimPolicy"), reclaimPolicies...)...)
	if near := s.NodeAffinity; near != nil {
		required := specPath.Child("nodeAffinity", "required")
		if near.Required == nil {
			errs = append(errs, field.Required(required, "must specify required node constraints"))
		} else if len(near.Required.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(required.Child("nodeSelectorTerms"), "must have at least one node selector term"))
		}
	}
	errs = append(errs, wrongSource(s)...)
	if s.StorageClassName != "" {
		errs = append(errs, wrongSubdomain(s.StorageClassName, specPath.Child("storageClassName"))...)
	}
	errs = append(errs, oneOf(*s.VolumeMode, specPath.Child("volumeMode"), volumeModes...)...)
	if class := s.VolumeAttributesClassName; class != nil {
		path := specPath.Child("volumeAttributesClassName")
		if *class == "" {
			errs = append(errs, field.Required(path, "an empty string is disallowed"))
		} else {
			errs = append(errs, wrongSubdomain(*class, path)...)
		}
		if s.CSI == nil {
			errs = append(errs, field.Required(specPath.Child("csi"), "has to be specified when using volumeAttributesClassName"))
		}
	}
	return errs
}

// wrongSource says what is wrong with the storage behind a volume, of which there is one kind. What those
// kinds need that are still in use is looked at.
func wrongSource(s *corev1.PersistentVolumeSpec) (errs field.ErrorList) {
	names := sourcesOf(&s.PersistentVolumeSource)
	if len(names) == 0 {
		errs = append(errs, field.Required(specPath, "must specify a volume type"))
	}
	for i := 1; i < len(names); i++ {
		errs = append(errs, field.Forbidden(specPath.Child(names[i]), "may not specify more than 1 volume type"))
	}
	if p := s.HostPath; p != nil {
		at := specPath.Child("hostPath")
		errs = append(errs, wrongPlace(p.Path, at.Child("path"))...)
		if !slices.Contains(hostPathTypes, *p.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), *p.Type, hostPathTypes))
		}
		if path.Clean(p.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
			errs = append(errs, field.Forbidden(specPath.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
		}
	}
	if l := s.Local; l != nil {
		errs = append(errs, wrongPlace(l.Path, specPath.Child("local", "path"))...)
		if s.NodeAffinity == nil {
			errs = append(errs, field.Required(specPath.Child("nodeAffinity"), "Local volume requires node affinity"))
		}
	}
	if n := s.NFS; n != nil {
		at := specPath.Child("nfs")
		errs = append(errs, missing(n.Server, at.Child("server"))...)
		errs = append(errs, missing(n.Path, at.Child("path"))...)
		if !path.IsAbs(n.Path) {
			errs = append(errs, field.Invalid(at.Child("path"), n.Path, "must be an absolute path"))
		}
	}
	if c := s.CSI; c != nil {
		at := specPath.Child("csi")
		errs = append(errs, wrongDriver(c.Driver, at.Child("driver"))...)
		errs = append(errs, missing(c.VolumeHandle, at.Child("volumeHandle"))...)
	}
	return errs
}

// missing says that there is nothing where something has to be.
func missing(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// wrongPlace says that a path is empty, or leads up.
func wrongPlace(place string, path *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(place, "/"), "..") {
		return field.ErrorList{field.Invalid(path, place, "must not contain '..'")}
	}
	return missing(place, path)
}

func wrongDriver(name string, path *field.Path) (errs field.ErrorList) {
	if name == "" {
		return missing(name, path)
	}
	if len(name) > driverNameMax {
		errs = append(errs, field.TooLong(path, "", driverNameMax))
	}
	for _, why := range utilvalidation.IsDNS1123Subdomain(strings.ToLower(name)) {
		errs = append(errs, field.Invalid(path, name, why))
	}
	return errs
}

// wrongModes says what is wrong with the ways in which a volume may be mounted; lacking is what is said if there
// are none.
func wrongModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path, lacking string) (errs field.ErrorList) {
	if len(modes) == 0 {
		errs = append(errs, field.Required(path, lacking))
	}
	alone, shared := false, false
	for _, m := range modes {
		known := slices.Contains(accessModes, m)
		if !known {
			errs = append(errs, field.NotSupported(path, m, accessModes))
		}
		alone = alone || m == corev1.ReadWriteOncePod
		shared = shared || known && m != corev1.ReadWriteOncePod
	}
	if alone && shared {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

func notPositive(q resource.Quantity, path *field.Path) field.ErrorList {
	if q.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, q.String(), "must be greater than zero")}
}

// wrongVolumeAfter says what an update must not change: what the volume is and where.
func wrongVolumeAfter(v, old *corev1.PersistentVolume) (errs field.ErrorList) {
	is, was := v.Spec.PersistentVolumeSource.DeepCopy(), &old.Spec.PersistentVolumeSource
	if is.CSI != nil && was.CSI != nil && was.CSI.ControllerExpandSecretRef == nil {
		is.CSI.ControllerExpandSecretRef = nil // it may come later
	}
	if !equality.Semantic.DeepEqual(is, was) {
		errs = append(errs, field.Forbidden(specPath.Child("persistentvolumesource"),
			fmt.Sprintf("spec.persistentvolumesource is immutable after creation\n%v", diff.Diff(was, is))))
	}
	errs = append(errs, validation.ValidateImmutableField(v.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	if near := old.Spec.NodeAffinity; near != nil && !equality.Semantic.DeepEqual(v.Spec.NodeAffinity, near) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), v.Spec.NodeAffinity, validation.FieldImmutableErrorMsg+", except for updating from beta label to GA"))
	}
	if old.Spec.VolumeAttributesClassName != nil && v.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(specPath.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
	}
	return errs
}
