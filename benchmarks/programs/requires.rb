# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"

# `require` of many small files, again and again: paths are searched, files are read and compiled.
#
#   ruby benchmarks/programs/requires.rb [AMOUNT]     # AMOUNT: files (default 1000)
module Programs
  class Requires
    SOURCE = "module Required\n  def self.call_%<n>d(a, b: 1) = [a, b].map { |x| x + 1 }.sum\nend\n"
    private_constant :SOURCE

    def initialize
      @folder = File.realpath(Dir.mktmpdir("requires-"))
      at_exit { FileUtils.rm_rf(@folder) }
      $LOAD_PATH.unshift(*Array.new(5) { |i| File.join(@folder, "empty_#{i}") }, @folder)
      @written = 0
    end

    # Returns the number of files loaded.
    #: (Integer) -> Integer
    def run(amount)
      write(amount)
      loaded = (0...amount).count { |n| require "required_#{n}" }
      $LOADED_FEATURES.reject! { |path| path.start_with?(@folder) } # else the next turn would load nothing
      loaded
    end

    private

    def write(amount)
      (@written...amount).each { |n| File.write(File.join(@folder, "required_#{n}.rb"), format(SOURCE, n: n)) }
      @written = [@written, amount].max
    end
  end
end

puts Programs::Requires.new.run(Integer(ARGV.fetch(0, "1000"))) if $PROGRAM_NAME == __FILE__
