# frozen_string_literal: true

require "set"

require "pitwall/analyse/clean_path"

module Pitwall
  module Analyse
    class Boot
      # Who requires which file. Known from the load of each file, and from requires that found their file loaded.
      # Predicts which files a boot would still load if the program no longer asked for a gem. The program is the
      # application and Bundler.require.
      class Requirers
        # from:  path of the file that was being loaded; nil: no file was
        # to:    paths of the files that the request may mean
        # kind:  how the file was asked for: "require", "autoload", …; "bundler_require": by Bundler.require
        # place: [path, line] of the line that asks
        Request = Struct.new(:from, :to, :kind, :place)
        FILES = %w[require require_relative autoload load].freeze
        ENDINGS = ["", ".rb", ".so"].freeze
        private_constant :Request, :FILES, :ENDINGS

        #: (Boot) -> void
        def initialize(boot)
          @boot = boot
        end

        # Lines that ask for files of a gem. Lines of the gem itself and of Bundler.require are left out, and so are
        # lines that name an autoloaded constant. Lines of the application come first.
        #: (String) -> Array[[String, Integer]]
        def of_gem(gem)
          found = requests_for(gem).reject { |one| %w[bundler_require autoload].include?(one.kind) }.map(&:place).uniq
          found = found.reject { |path, _| path.empty? || @boot.owners.gem_at(path) == gem }
          found.partition { |path, _| @boot.owners.mine?(path) }.flatten(1)
        end

        # Time that a boot saves if the program does not ask for files of the gem. A file for which other code asks is
        # still loaded. Its time is not saved.
        # @param nodes [Array<Node>] loads of files of the gem for which the program asks; no load is within another
        # @param needed [Enumerable<String>] files that are loaded in any case
        #: (String, Array[Node], ?needed: Enumerable[String]) -> Integer
        def saving_ns(gem, nodes, needed: [])
          kept = kept_without(gem, needed)
          nodes.flat_map(&:subtree).sum { |node| kept.include?(home(node)) ? 0 : node.own[:wall] }
        end

        private

        # Files that are loaded if the program does not ask for the gem.
        def kept_without(gem, needed)
          dropped = Set.new.compare_by_identity.merge(requests_for(gem).select { |one| program?(one) })
          kept = Set.new(needed)
          waiting = [nil, *kept]
          until waiting.empty?
            by_home.fetch(waiting.pop, []).each do |request|
              next if dropped.include?(request)

              request.to.each { |path| waiting << path if kept.add?(path) }
            end
          end
          kept
        end

        def program?(request) = request.kind == "bundler_require" || @boot.owners.mine?(request.place[0])

        def requests_for(gem)
          @by_gem ||= requests.each_with_object({}) do |request, found|
            request.to.map { |path| @boot.owners.gem_at(path) }.uniq.each { |name| (found[name] ||= []) << request }
          end
          @by_gem.fetch(gem, [])
        end

        def by_home = @by_home ||= requests.group_by(&:from)

        def requests = @requests ||= first_requests + repeated_requests

        def first_requests
          files.map { |node| request(node.row, node.parent, [node.row.path]) }
        end

        def repeated_requests
          @boot.trees.zip(@boot.segments).flat_map do |tree, segment|
            by_id = tree.nodes.to_h { |node| [node.row.id, node] }
            segment.repeated_loads.map { |row| request(row, by_id[row.around], targets(row)) }
          end
        end

        def request(row, around, paths)
          kind = around&.row&.kind == "bundler_require" ? around.row.kind : row.kind
          Request.new(home(around), paths, kind, [row.from, row.line])
        end

        # The file whose load this is a part of.
        def home(node)
          node = node.parent while node && !file?(node)
          node&.row&.path
        end

        def file?(node) = FILES.include?(node.row.kind) && !node.row.path.empty?

        def files = @files ||= @boot.nodes.select { |node| file?(node) }

        # Files that a repeated require may mean; several if the name does not decide.
        def targets(row)
          asked = row.kind == "require_relative" ? "#{row.from}/../#{row.name}" : row.name
          name = CleanPath.of(asked) # the folder of "./lib/cart" is not known: files are found by the ending
          return known(name) if name.start_with?("/")

          by_name.fetch(name) { by_name[name] = by_ending(name) }
        end

        def known(path) = ENDINGS.map { |ending| path + ending }.select { |one| paths.include?(one) }.first(1)

        def paths = @paths ||= files.to_set { |node| node.row.path }

        # The same name found the same file when it was loaded.
        def by_name
          @by_name ||= files.reject { |node| node.row.kind == "require_relative" }
                            .to_h { |node| [node.row.name, [node.row.path]] }
        end

        def by_ending(name)
          @by_base ||= paths.group_by { |path| File.basename(path, ".*") }
          found = @by_base.fetch(File.basename(name).sub(/\.(?:rb|so)\z/, ""), [])
          found.select { |path| ENDINGS.any? { |ending| path.end_with?("/#{name}#{ending}") } }
        end
      end
    end
  end
end
