package builtin

import (
	"fmt"
	"strings"
	"testing"
)

func TestSchedules(t *testing.T) { // rule B62
	for _, tt := range []struct{ name, schedule, want string }{
		{"every minute", "* * * * *", ""},
		{"a question mark is a star", "? ? ? ? ?", ""},
		{"blanks do not matter", "  0\t0  1 1   0 ", ""},
		{"lists of numbers, ranges and steps", "0,15,30-45/5 1/2 */3 1-12 0-6", ""},
		{"months and days have names, in any case", "0 0 * jan-DEC Mon,wed-FRI", ""},
		{"a star may have an end, which is of no use", "*-5/2 * * * *", ""},
		{"a list may be empty", ", * * * *", ""},
		{"some have names", "@midnight", ""},
		{"or intervals", "@every 1h30m", ""},

		{"five fields", "* * * *", "expected exactly 5 fields, found 4: [* * * *]"},
		{"no seconds", "0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"},
		{"not blanks alone", "  ", "expected exactly 5 fields, found 0: []"},
		{"an hour has no minute 60", "60 * * * *", "end of range (60) above maximum (59): 60"},
		{"a day has no hour 24", "0 0-24 * * *", "end of range (24) above maximum (23): 0-24"},
		{"a month begins with 1", "0 0 0 * *", "beginning of range (0) below minimum (1): 0"},
		{"a week ends with 6", "0 0 * * 7", "end of range (7) above maximum (6): 7"},
		{"a number with a step begins somewhere", "99/5 * * * *", "beginning of range (99) beyond end of range (59): 99/5"},
		{"time goes on", "30-10 * * * *", "beginning of range (30) beyond end of range (10): 30-10"},
		{"and does not stand still", "*/0 * * * *", "step of range should be a positive number: */0"},
		{"nor goes back", "*/-5 * * * *", "negative number (-5) not allowed: -5"},
		{"one hyphen", "1-2-3 * * * *", "too many hyphens: 1-2-3"},
		{"one slash", "1/2/3 * * * *", "too many slashes: 1/2/3"},
		{"numbers", "x * * * *", `failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax`},
		{"hours have no names", "* mon * * *", `failed to parse int from mon: strconv.Atoi: parsing "mon": invalid syntax`},
		{"no number is negative", "-5 * * * *", `failed to parse int from : strconv.Atoi: parsing "": invalid syntax`},
		{"of what is wrong the first is told", "x y * * 7", `failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax`},
		{"names that there are", "@sometimes", "unrecognized descriptor: @sometimes"},
		{"intervals that there are", "@every day", `failed to parse duration @every day: time: invalid duration "day"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := wrongSchedule(tt.schedule); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%q\n got %s\nwant %s", tt.schedule, got, tt.want)
			}
		})
	}
}

func TestWhatIsWrongWithCronJobs(t *testing.T) { // rules B16, B62
	zone := func(name string) string {
		return cron(fmt.Sprintf(`"schedule":"@daily","timeZone":%q,`, name))
	}
	long := strings.Repeat("a", cronJobNameMax+1)
	named := func(name string) string { return strings.Replace(zone("UTC"), `"a"`, `"`+name+`"`, 1) }
	refusals(t, []write{
		{"one as it should be", "CronJob", "", "", zone("Europe/Vienna"), ""},
		{"a schedule has to be", "CronJob", "", "", cron(""), "spec.schedule: Required value"},
		{"and to be one", "CronJob", "", "", cron(`"schedule":"often",`), `spec.schedule: Invalid value: "often": expected exactly 5 fields, found 1: [often]`},
		{"a schedule is not where time zones are", "CronJob", "", "", cron(`"schedule":"TZ=UTC * * * * *",`),
			`spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`},
		{"a time zone is said or not", "CronJob", "", "", zone(""), `spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string`},
		{"one that nobody knows", "CronJob", "", "", zone("Middle/Earth"), `spec.timeZone: Invalid value: "Middle/Earth": unknown time zone Middle/Earth`},
		{"one that is a path", "CronJob", "", "", zone("../../etc/passwd"), `spec.timeZone: Invalid value: "../../etc/passwd": unknown time zone ../../etc/passwd`},
		{"one that begins with a hyphen", "CronJob", "", "", zone("Etc/-1"), `spec.timeZone: Invalid value: "Etc/-1": unknown time zone Etc/-1`},
		{"that of the machine is none", "CronJob", "", "", zone("Local"),
			`spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones`},
		{"numbers that are less than nothing", "CronJob", "", "",
			cronOf(`"schedule":"@daily","startingDeadlineSeconds":-1,"successfulJobsHistoryLimit":-1,"failedJobsHistoryLimit":-1,`, `"parallelism":-1,`),
			`[spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0, ` +
				`spec.jobTemplate.spec.parallelism: Invalid value: -1: must be greater than or equal to 0, ` +
				`spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0, ` +
				`spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0]`},
		{"what happens to jobs that overlap", "CronJob", "", "", cron(`"schedule":"@daily","concurrencyPolicy":"Odd",`),
			`spec.concurrencyPolicy: Unsupported value: "Odd": supported values: "Allow", "Forbid", "Replace"`},
		{"its jobs select their pods themselves", "CronJob", "", "", cronOf(`"schedule":"@daily",`, `"manualSelector":true,"selector":{},`),
			"[spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated, " +
				`spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"]`},
		{"its jobs end", "CronJob", "", "", strings.Replace(zone("UTC"), `"restartPolicy":"Never",`, "", 1),
			`spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`},
		{"jobs are named after it", "CronJob", "", "", named(long), `metadata.name: Invalid value: "` + long + `": must be no more than 52 characters`},
		{"though one that is there may stay", "CronJob", "", named(long), named(long), ""},
	})
}
