# frozen_string_literal: true

require "pitwall/cli/support/output_file"
require "pitwall/errors"

module Pitwall
  module CLI
    # Changes of caches that a gate does not count, in a file: "KIND SUBJECT PATH" on each line. The path is relative to
    # the working directory where it can be, and has no line number, which changes too often. `*` stands for any
    # characters. Lines that begin with # are comments.
    class AllowList
      BYTES = 1 << 20
      HEAD = "# Changes that pitwall caches --fail-if allows: kind, subject, file. * stands for any characters.\n"
      private_constant :BYTES, :HEAD

      # @raise [UsageError] the file can't be read, or a line has no three parts
      #: (String) -> AllowList
      def self.read(file)
        raise UsageError, "--allow-list #{file}: larger than 1 MiB" if File.size(file) > BYTES

        new(File.readlines(file, encoding: "UTF-8", chomp: true).map(&:scrub), file)
      rescue SystemCallError => error
        raise UsageError, "--allow-list #{file}: #{error.message.sub(/ @ .*/, "")}; --write-allow-list writes one"
      end

      # @param rows [Array<Analyse::Caches::Finding>]
      #: (String, Array[untyped]) -> void
      def self.write(file, rows)
        OutputFile.write(file) { |out| out.write(HEAD + rows.map { |row| "#{line(row)}\n" }.uniq.sort.join) }
      end

      # "method_added<TAB>Shop::Cart#sum<TAB>app/models/cart.rb"
      #: (untyped) -> String
      def self.line(row)
        [row.kind, row.subject, row.path.delete_prefix("#{Dir.pwd}/")].map { |part| part.tr("\t\n", "  ") }.join("\t")
      end

      #: (Array[String], String) -> void
      def initialize(lines, file)
        @patterns = lines.each_with_index.filter_map do |line, at|
          next if line.strip.empty? || line.start_with?("#")

          unless line.split("\t", -1).size == 3
            raise UsageError, "--allow-list #{file}:#{at + 1}: a line has kind, subject and file, with tabs between"
          end
          [line, /\A#{Regexp.escape(line).gsub("\\*", ".*")}\z/]
        end
      end

      # @param row [Analyse::Caches::Finding]
      #: (untyped) -> bool
      def include?(row)
        line = AllowList.line(row)
        @patterns.any? { |_, pattern| pattern.match?(line) }
      end

      # Lines that match none of these.
      #: (Array[untyped]) -> Array[String]
      def stale(rows)
        lines = rows.map { |row| AllowList.line(row) }
        @patterns.reject { |_, pattern| lines.any? { |line| pattern.match?(line) } }.map(&:first)
      end
    end
  end
end
