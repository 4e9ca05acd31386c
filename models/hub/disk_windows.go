package hub

import "syscall"

// diskFull are the errors of a disk that takes no more: ERROR_HANDLE_DISK_FULL and
// ERROR_DISK_FULL.
var diskFull = []error{syscall.Errno(39), syscall.Errno(112)}
