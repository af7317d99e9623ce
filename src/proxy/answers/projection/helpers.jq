# Filters for results that are text. They take a text or an array: a text gives a text, an array an array.

# A filter knows nothing of the process that it runs in, and does not end it.
def env: {};
def halt($code): error("halt is not supported");
def halt: halt(0);
def halt_error($code): halt($code);
def halt_error: halt(5);

# The lines of a text, without the end of the last one.
def lines: if type == "array" then . else rtrimstr("\n") | split("\n") end;

# The lines, or the elements as JSON, that match a regular expression; letter case does not count.
def grep($pattern):
  def matching: map(select(if type == "string" then . else tojson end | test($pattern; "i")));
  if type == "array" then matching else lines | matching | join("\n") end;

# The first lines or elements.
def head($count): if type == "array" then .[:$count] else lines | .[:$count] | join("\n") end;

# The last lines or elements.
def tail($count):
  def last: if $count > 0 then .[-$count:] else [] end;
  if type == "array" then last else lines | last | join("\n") end;

# The formats of jq that this jq lacks. Each takes an array of scalars.
def scalars_only(cell): map(if type == "array" or type == "object" then error("\(type) cannot be a cell") else cell end);
def @tsv:
  scalars_only(if type == "string"
    then if test("[\\\\\t\n\r]")
      then gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r") else . end
    elif . == null then "" else tojson end) | join("\t");
def @csv:
  scalars_only(if type == "string" then "\"" + gsub("\""; "\"\"") + "\""
    elif . == null then "" else tojson end) | join(",");

# An array of objects as a text, in lines with tabs between the columns; the first line has the names of all members.
def table:
  (if type == "array" then . else [.] end) as $rows
  | if all($rows[]; type == "object") then . else error("table takes an object or an array of objects") end
  | reduce ($rows[] | keys_unsorted[]) as $key ([]; if any(.[]; . == $key) then . else . + [$key] end)
  | . as $columns
  | [($columns, ($rows[] | [.[$columns[]] | if type == "object" or type == "array" then tojson else . end])) | @tsv]
  | join("\n");
