# frozen_string_literal: true

# Assembles lib/pitwall/bench_child/assembled.rb from the other files of its folder.
#
# `pitwall bench` starts one file, by its path, on any Ruby. The source of that file is in parts. Two callers write the
# assembled file: script/setup in a checkout, and pitwall-core.gemspec for `gem build` and for Bundler's `git:` and
# `path:` sources. The gem contains the assembled file, and git ignores it.
#
# This file defines no constants but the module, because it is loaded twice if a Gemfile names two checkouts. It uses
# core Ruby only, because Bundler evaluates the gemspec in the user's program.
module BenchChild
  class << self
    # The parts in the order of the assembled file. While a part loads, it uses constants of earlier parts.
    def parts
      %w[language sweep calls work meter calibration digest turns measurement counters stub child]
    end

    #: (String) -> String
    def path(root) = File.join(folder(root), "assembled.rb")

    #: (String) -> bool
    def current?(root) = File.file?(path(root)) && File.binread(path(root)) == assembled(root)

    # Writes the file if its content would change. The new file is renamed into place, so that a process that starts at
    # the same time reads a complete file.
    # @raise [SystemCallError] the folder cannot be written
    #: (String) -> void
    def write(root)
      return if current?(root)

      temporary = "#{path(root)}.#{Process.pid}"
      File.binwrite(temporary, assembled(root))
      File.rename(temporary, path(root))
    ensure
      File.unlink(temporary) if temporary && File.exist?(temporary)
    end

    private

    def folder(root) = File.join(root, "lib/pitwall/bench_child")

    # A part's first line is its magic comment. The line that names the part replaces it, so that line 1 of the part is
    # the line of its name.
    def assembled(root)
      check_names(root)
      head = "# frozen_string_literal: true\n\n# Assembled by script/bench_child.rb. Edit the parts, not this file.\n\n"
      parts.inject(head.b) do |text, part|
        magic, rest = File.binread(File.join(folder(root), "#{part}.rb")).split("\n", 2)
        unless magic == "# frozen_string_literal: true"
          raise "bench_child/#{part}.rb: line 1 is no frozen_string_literal comment"
        end

        text << "# part: #{part}.rb\n" << rest << "\n"
      end
    end

    def check_names(root)
      found = Dir.children(folder(root)).grep(/\.rb\z/).map { |name| name.delete_suffix(".rb") } - ["assembled"]
      wrong = (found - parts) | (parts - found)
      raise "script/bench_child.rb: its list of parts and the folder differ in #{wrong.join(", ")}" unless wrong.empty?
    end
  end
end
