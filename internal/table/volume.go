package table

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumes are the kinds that storage is asked for and found with.
func volumes() kinds {
	return kinds{
		v1("", "PersistentVolume"):                    volume(),
		v1("", "PersistentVolumeClaim"):               volumeClaim(),
		v1(storagev1.GroupName, "StorageClass"):       storageClass(),
		v1(storagev1.GroupName, "VolumeAttachment"):   volumeAttachment(),
		v1(storagev1.GroupName, "CSIDriver"):          csiDriver(),
		v1(storagev1.GroupName, "CSIStorageCapacity"): storageCapacity(),
		v1(storagev1.GroupName, "VolumeAttributesClass"): columns(
			name,
			text("DriverName", swagger(storagev1.VolumeAttributesClass{}, "driverName"), func(c *storagev1.VolumeAttributesClass) string { return c.DriverName }),
			age,
		),
		v1(storagev1.GroupName, "CSINode"): columns(
			name,
			number("Drivers", "Drivers indicates the number of CSI drivers registered on the node", func(n *storagev1.CSINode) int { return len(n.Spec.Drivers) }),
			age,
		),
	}
}

func volume() *Columns {
	type PV = *corev1.PersistentVolume
	spec := func(field string) string { return swagger(corev1.PersistentVolumeSpec{}, field) }
	status := func(field string) string { return swagger(corev1.PersistentVolumeStatus{}, field) }
	return columns(
		name,
		text("Capacity", spec("capacity"), func(v PV) string { return stored(v.Spec.Capacity) }),
		text("Access Modes", spec("accessModes"), func(v PV) string { return accessModes(v.Spec.AccessModes) }),
		text("Reclaim Policy", spec("persistentVolumeReclaimPolicy"), func(v PV) string { return string(v.Spec.PersistentVolumeReclaimPolicy) }),
		text("Status", status("phase"), func(v PV) string { return phase(v, string(v.Status.Phase)) }),
		text("Claim", spec("claimRef"), func(v PV) string {
			if v.Spec.ClaimRef == nil {
				return ""
			}
			return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
		}),
		text("StorageClass", "StorageClass of the pv", func(v PV) string {
			return classOf(v, v.Spec.StorageClassName)
		}),
		text("VolumeAttributesClass", "VolumeAttributesClass of the pv", func(v PV) string { return at(v.Spec.VolumeAttributesClassName, unset) }),
		text("Reason", status("reason"), func(v PV) string { return v.Status.Reason }),
		age,
		text("VolumeMode", spec("volumeMode"), func(v PV) string { return at(v.Spec.VolumeMode, unset) }).wide(),
	)
}

func volumeClaim() *Columns {
	type PVC = *corev1.PersistentVolumeClaim
	spec := func(field string) string { return swagger(corev1.PersistentVolumeClaimSpec{}, field) }
	status := func(field string) string { return swagger(corev1.PersistentVolumeClaimStatus{}, field) }
	bound := func(cell func(PVC) string) func(PVC) string { // of a claim that has a volume
		return func(c PVC) string {
			if c.Spec.VolumeName == "" {
				return ""
			}
			return cell(c)
		}
	}
	return columns(
		name,
		text("Status", status("phase"), func(c PVC) string { return phase(c, string(c.Status.Phase)) }),
		text("Volume", spec("volumeName"), func(c PVC) string { return c.Spec.VolumeName }),
		text("Capacity", status("capacity"), bound(func(c PVC) string { return stored(c.Status.Capacity) })),
		text("Access Modes", status("accessModes"), bound(func(c PVC) string { return accessModes(c.Status.AccessModes) })),
		text("StorageClass", "StorageClass of the pvc", func(c PVC) string { return classOf(c, at(c.Spec.StorageClassName, "")) }),
		text("VolumeAttributesClass", "VolumeAttributesClass of the pvc", func(c PVC) string { return at(c.Spec.VolumeAttributesClassName, unset) }),
		age,
		text("VolumeMode", spec("volumeMode"), func(c PVC) string { return at(c.Spec.VolumeMode, unset) }).wide(),
	)
}

// stored is the storage among resources.
func stored(r corev1.ResourceList) string {
	q := r[corev1.ResourceStorage]
	return q.String()
}

// phase is the phase of an object unless it is on its way out.
func phase(obj metav1.Object, phase string) string {
	if obj.GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return phase
}

// classOf is the storage class, which was an annotation once.
func classOf(obj metav1.Object, class string) string {
	if old, ok := obj.GetAnnotations()[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	return class
}

// accessModes are the short names of access modes, in their usual order.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	var short []string
	for _, m := range []struct {
		mode  corev1.PersistentVolumeAccessMode
		short string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"}, {corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, m.mode) {
			short = append(short, m.short)
		}
	}
	return strings.Join(short, ",")
}

func storageClass() *Columns {
	type SC = *storagev1.StorageClass
	doc := func(field string) string { return swagger(storagev1.StorageClass{}, field) }
	return columns(
		named(func(m metav1.Object) string { return defaulted(m, "storageclass.kubernetes.io/is-default-class") }),
		text("Provisioner", doc("provisioner"), func(c SC) string { return c.Provisioner }),
		text("ReclaimPolicy", doc("reclaimPolicy"), func(c SC) string { return at(c.ReclaimPolicy, "Delete") }),
		text("VolumeBindingMode", doc("volumeBindingMode"), func(c SC) string { return at(c.VolumeBindingMode, "Immediate") }),
		truth("AllowVolumeExpansion", doc("allowVolumeExpansion"), func(c SC) bool { return flag(c.AllowVolumeExpansion, false) }).as("string"),
		age,
	)
}

// defaulted is the name of a class, with a mark if an annotation says that it is the default.
func defaulted(m metav1.Object, annotation string) string {
	if m.GetAnnotations()[annotation] == "true" {
		return m.GetName() + " (default)"
	}
	return m.GetName()
}

func volumeAttachment() *Columns {
	type VA = *storagev1.VolumeAttachment
	attacher := text("Attacher", swagger(storagev1.VolumeAttachmentSpec{}, "attacher"), func(a VA) string { return a.Spec.Attacher })
	attacher.Format = "name"
	return columns(
		name,
		attacher,
		text("PV", swagger(storagev1.VolumeAttachmentSource{}, "persistentVolumeName"), func(a VA) string { return at(a.Spec.Source.PersistentVolumeName, "") }),
		text("Node", swagger(storagev1.VolumeAttachmentSpec{}, "nodeName"), func(a VA) string { return a.Spec.NodeName }),
		truth("Attached", swagger(storagev1.VolumeAttachmentStatus{}, "attached"), func(a VA) bool { return a.Status.Attached }),
		age,
	)
}

func csiDriver() *Columns {
	type D = *storagev1.CSIDriver
	doc := func(field string) string { return swagger(storagev1.CSIDriverSpec{}, field) }
	return columns(
		name,
		truth("AttachRequired", doc("attachRequired"), func(d D) bool { return flag(d.Spec.AttachRequired, true) }),
		truth("PodInfoOnMount", doc("podInfoOnMount"), func(d D) bool { return flag(d.Spec.PodInfoOnMount, false) }),
		truth("StorageCapacity", doc("storageCapacity"), func(d D) bool { return flag(d.Spec.StorageCapacity, false) }),
		text("TokenRequests", doc("tokenRequests"), func(d D) string {
			if d.Spec.TokenRequests == nil {
				return unset
			}
			var audiences []string
			for _, r := range d.Spec.TokenRequests {
				audiences = append(audiences, r.Audience)
			}
			return strings.Join(audiences, ",")
		}),
		truth("RequiresRepublish", doc("requiresRepublish"), func(d D) bool { return flag(d.Spec.RequiresRepublish, false) }),
		text("Modes", doc("volumeLifecycleModes"), func(d D) string {
			var modes []string
			for _, m := range d.Spec.VolumeLifecycleModes {
				modes = append(modes, string(m))
			}
			return or(strings.Join(modes, ","), none)
		}),
		age,
	)
}

func storageCapacity() *Columns {
	type C = *storagev1.CSIStorageCapacity
	return columns(
		name,
		text("StorageClassName", swagger(storagev1.CSIStorageCapacity{}, "storageClassName"), func(c C) string { return c.StorageClassName }),
		text("Capacity", swagger(storagev1.CSIStorageCapacity{}, "capacity"), func(c C) string {
			if c.Capacity == nil {
				return unset
			}
			return c.Capacity.String()
		}),
	)
}
