package builtin

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // so that a time zone is known or not whatever the machine has

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What a cron job gets that does not say.
const (
	succeededKeptUsual = int32(3)
	failedKeptUsual    = int32(1)
)

// cronJobNameMax is how long a name may be that jobs are named after: they add the time to it.
const cronJobNameMax = 52

// cronJobs is what holds for cron jobs (rule B62).
var cronJobs = rules[*batchv1.CronJob]{
	policy:  workloadPolicy,
	spec:    func(c, from *batchv1.CronJob) { c.Spec = from.Spec },
	status:  func(c, from *batchv1.CronJob) { c.Status = from.Status },
	tracked: func(c *batchv1.CronJob) any { return c.Spec },
	defaults: func(c *batchv1.CronJob) {
		s := &c.Spec
		fillInPodSpec(&s.JobTemplate.Spec.Template.Spec)
		fillInFailurePolicy(s.JobTemplate.Spec.PodFailurePolicy)
		or(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
		orNew(&s.Suspend, false)
		orNew(&s.SuccessfulJobsHistoryLimit, succeededKeptUsual)
		orNew(&s.FailedJobsHistoryLimit, failedKeptUsual)
	},
	wrong: wrongCronJob,
	wrongNew: func(c *batchv1.CronJob) field.ErrorList {
		if len(c.Name) <= cronJobNameMax {
			return nil
		}
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), c.Name, fmt.Sprintf("must be no more than %d characters", cronJobNameMax))}
	},
}

func wrongCronJob(c *batchv1.CronJob) field.ErrorList {
	s, path, errs := &c.Spec, specPath.Child("schedule"), wrongFinalizers(c)
	switch err := wrongSchedule(s.Schedule); {
	case s.Schedule == "":
		errs = append(errs, field.Required(path, ""))
	case strings.Contains(s.Schedule, "TZ"):
		errs = append(errs, field.Invalid(path, s.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	case err != nil:
		errs = append(errs, field.Invalid(path, s.Schedule, err.Error()))
	}
	errs = append(errs, negative(s.StartingDeadlineSeconds, specPath.Child("startingDeadlineSeconds"))...)
	errs = append(errs, wrongTimeZone(s.TimeZone, specPath.Child("timeZone"))...)
	errs = append(errs, oneOf(s.ConcurrencyPolicy, specPath.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	job, jobPath := &s.JobTemplate.Spec, specPath.Child("jobTemplate", "spec")
	errs = append(errs, wrongJobSpec(job, jobPath)...)
	if job.Selector != nil {
		errs = append(errs, field.Invalid(jobPath.Child("selector"), job.Selector, "`selector` will be auto-generated"))
	}
	if is(job.ManualSelector) {
		errs = append(errs, field.NotSupported(jobPath.Child("manualSelector"), job.ManualSelector, []string{"nil", "false"}))
	}
	errs = append(errs, negative(s.SuccessfulJobsHistoryLimit, specPath.Child("successfulJobsHistoryLimit"))...)
	return append(errs, negative(s.FailedJobsHistoryLimit, specPath.Child("failedJobsHistoryLimit"))...)
}

// zonePart is what stands between the slashes of the name of a time zone.
var zonePart = regexp.MustCompile(`^[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}$`)

func wrongTimeZone(zone *string, path *field.Path) (errs field.ErrorList) {
	if zone == nil {
		return nil
	}
	if *zone == "" {
		return field.ErrorList{field.Invalid(path, zone, "timeZone must be nil or non-empty string")}
	}
	for part := range strings.SplitSeq(*zone, "/") {
		if part == "." || part == ".." || !zonePart.MatchString(part) {
			return field.ErrorList{field.Invalid(path, zone, "unknown time zone "+*zone)}
		}
	}
	if strings.EqualFold(*zone, "Local") {
		errs = append(errs, field.Invalid(path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		errs = append(errs, field.Invalid(path, zone, err.Error()))
	}
	return errs
}
