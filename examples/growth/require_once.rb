# `require` of N empty files, once, to be profiled with native frames: which function of Ruby grows with N?
# examples/growth/require.rb measures how the time grows.
#
#   pitwall profile --native -- ruby examples/growth/require_once.rb 8000     # default 4000
#   pitwall report FILE.pit --view graph --object libc.so --min 1% --weight cpu

require "fileutils"
require "tmpdir"

folder = File.realpath(Dir.mktmpdir("require-once-"))
begin
  names = Array.new(Integer(ARGV.fetch(0, "4000"))) { |number| "empty_file_#{number}" }
  names.each { |name| File.write(File.join(folder, "#{name}.rb"), "") }
  $LOAD_PATH.unshift(folder)
  names.each { |name| require name }
ensure
  FileUtils.rm_rf(folder)
end
