# Installs mcpzip @VERSION@ into the user's programs, or into MCPZIP_INSTALL_DIR, and puts that into the user's PATH.
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

$base = if ($env:MCPZIP_DOWNLOAD_BASE) { $env:MCPZIP_DOWNLOAD_BASE } else { 'https://github.com/@REPOSITORY@/releases/download/v@VERSION@' }
$directory = if ($env:MCPZIP_INSTALL_DIR) { $env:MCPZIP_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'Programs\mcpzip' }

$target, $wanted = switch ($env:PROCESSOR_ARCHITECTURE) {
    'AMD64' { 'x86_64-pc-windows-msvc', '@SHA256:mcpzip-x86_64-pc-windows-msvc.zip@' }
    'ARM64' { 'aarch64-pc-windows-msvc', '@SHA256:mcpzip-aarch64-pc-windows-msvc.zip@' }
    default { throw "there is no program for $env:PROCESSOR_ARCHITECTURE" }
}

$work = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
New-Item -ItemType Directory -Path $work | Out-Null
try {
    $archive = Join-Path $work "mcpzip-$target.zip"
    Invoke-WebRequest -UseBasicParsing -Uri "$base/mcpzip-$target.zip" -OutFile $archive
    $found = (Get-FileHash -Algorithm SHA256 $archive).Hash.ToLowerInvariant()
    if ($found -ne $wanted) { throw "the archive is not the one of the release: its checksum is $found, it should be $wanted" }
    Expand-Archive -Path $archive -DestinationPath $work
    New-Item -ItemType Directory -Force -Path $directory | Out-Null
    Copy-Item -Force (Join-Path $work "mcpzip-$target\mcpzip.exe") (Join-Path $directory 'mcpzip.exe')
} finally {
    Remove-Item -Recurse -Force $work
}

$path = [Environment]::GetEnvironmentVariable('Path', 'User')
if (($path -split ';') -notcontains $directory) {
    [Environment]::SetEnvironmentVariable('Path', "$path;$directory".TrimStart(';'), 'User')
    Write-Output "$directory is in your PATH now; open a new window"
}
Write-Output "installed $(& (Join-Path $directory 'mcpzip.exe') --version) in $directory"
Write-Output 'next: mcpzip demo, then mcpzip init'
