// Command pawl serves the Kubernetes API from one process.
//
//	pawl serve        run a server
//	pawl version      say which pawl this is
//	pawl completion   complete commands and flags in your shell
//	pawl help         explain a command
//
// What a command has to say goes to stdout, everything else to stderr. An error is a line
// that begins with "pawl: ", and if something can be done about it a second that begins with
// "pawl: hint: ".
//
// Exit codes: 0 it did what was asked; 1 it could not; 2 it was not understood; 130 and 143
// a second SIGINT or SIGTERM ended it at once.
//
// Everything a process has only one of is touched here and nowhere below: arguments,
// standard streams, signals, the exit code, and klog's logger.
package main
