package box

import "golang.org/x/sys/unix"

var legacyCalls = []tracedCall{
	{unix.SYS_OPEN, -1, 0, 1, ToRead, ifThere},
	{unix.SYS_CREAT, -1, 0, -1, ToMake, always},
	{unix.SYS_MKDIR, -1, 0, -1, ToMake, ifNew},
	{unix.SYS_MKNOD, -1, 0, -1, ToMake, ifNew},
	{unix.SYS_RMDIR, -1, 0, -1, ToMake, ifThere},
	{unix.SYS_UNLINK, -1, 0, -1, ToMake, ifThere},
	{unix.SYS_SYMLINK, -1, 1, -1, ToMake, ifNew},
	{unix.SYS_LINK, -1, 1, -1, ToMake, ifNew},
	{unix.SYS_RENAME, -1, 0, -1, ToMake, ifThere},
	{unix.SYS_RENAME, -1, 1, -1, ToMake, always},
	{unix.SYS_RENAMEAT, 0, 1, -1, ToMake, ifThere},
	{unix.SYS_RENAMEAT, 2, 3, -1, ToMake, always},
}
