# How does the time of `require` grow with the number of files? N empty files are required, one after another, as the talk
# "Profiling Ruby, or, How I Made Rails Start Up 2x Faster" (Greg Price, 2013) did it: on Ruby 1.9.3 each file took the longer
# the more there were already, so that twice the files took four times as long.
#
#   pitwall bench examples/growth/require.rb
#   pitwall compare --ruby ruby3.3 --ruby ruby3.4 examples/growth/require.rb

require "fileutils"
require "pitwall/ips"
require "tmpdir"

# Files that can be required again: Ruby keeps the paths of those it has loaded, and forgets a file whose path is taken out.
class EmptyFiles
  attr_reader :names

  def initialize(count)
    @folder = File.realpath(Dir.mktmpdir("require-growth-"))
    @names = Array.new(count) { |number| "empty_file_#{number}" }
    @names.each { |name| File.write(File.join(@folder, "#{name}.rb"), "") }
    $LOAD_PATH.unshift(@folder)
  end

  def forget
    $LOADED_FEATURES.reject! { |path| path.start_with?(@folder) }
    require "rbconfig" # has long been loaded; Ruby finds out by this call, outside the clock, that its index is out of date
    self
  end

  def delete
    $LOAD_PATH.delete(@folder)
    FileUtils.rm_rf(@folder)
  end
end

Pitwall.bench "require N empty files" do |x|
  x.param :n, 250, 500, 1000, 2000, 4000
  x.setup { |n:| EmptyFiles.new(n) }
  x.before(&:forget)
  x.report("require") { |files| files.names.each { |name| require name } }
  x.after(&:delete)
end
