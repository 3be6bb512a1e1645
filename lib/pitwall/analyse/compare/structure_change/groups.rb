# frozen_string_literal: true

module Pitwall
  module Analyse
    class StructureChange
      # What differs, as short lists: paths that one side alone has, grouped by what they begin with, and paths that
      # both have and one calls more often.
      #
      # A path that one side alone has belongs to the nearest class of the application or of a gem on it. Ruby's own
      # methods and C functions so count for the class that called them. The costs of all groups add up to what such
      # paths cost, and each path is in one group.
      class Groups
        # node:  the outermost path of the group
        # owner: the class, e.g. "Rack::Session::Cookie", or the method's name if it has none
        # cost:  B − A in ns, without what other groups cost
        # calls: of the group's paths on that side; nil for samples
        # methods: number of different methods
        # doubt: :exact, :beyond, :chance or :small, as Result#verdicts
        Group = Struct.new(:node, :owner, :cost, :calls, :methods, :doubt, keyword_init: true)

        # cost, calls: as above, with what is below the path. calls are those of both sides
        More = Struct.new(:node, :cost, :calls, :doubt, keyword_init: true)

        # "Shop::Cart" of "Shop::Cart#total"; none of "/opt/ruby/zlib.so", the code of a file.
        OWNER = %r{\A([^/]+?)(?:#|\.(?=[^./]+\z))}.freeze
        # Of blocks: where they are, "<main> (shop.rb:12)".
        PLACE = / \([^()]+\)\z/.freeze
        SURE = { exact: 0, beyond: 0 }.freeze # what comes before differences that may be chance
        private_constant :OWNER, :PLACE, :SURE

        #: (Result) -> void
        def initialize(result)
          @result = result
        end

        # Groups of paths that only one side has, beyond noise before the others, then most expensive first.
        # @param presence [Symbol] :new or :gone
        #: (Symbol) -> Array[Group]
        def alone(presence)
          side = presence == :new ? 1 : 0
          groups = {}
          owners = owners(presence)
          owners.each_with_index do |owner, node|
            next if owner.nil?

            group = (groups[owner] ||= [[], 0, 0])
            group[0] << node
            group[1] += @result.own_change(node)
            group[2] += @result.calls[side][node] if @result.exact
          end
          list = groups.values.map { |nodes, cost, calls| group(nodes, cost, calls) }
          list.sort_by { |group| [SURE.fetch(group.doubt, 1), -group.cost.abs, group.node] }
        end

        # Paths of both sides that differ in more than what calls them: of traces, those whose calls grew by another
        # factor than their callers'; of samples, those beyond noise, unless one callee has most of the change.
        #: () -> Array[More]
        def more
          nodes = (1...@result.paths.size).select do |node|
            next false unless @result.presence(node) == :both && @result.structural?(node)

            @result.exact ? other_factor?(node) : !through_one?(node)
          end
          list = nodes.map do |node|
            More.new(node: node, cost: @result.change(node), doubt: @result.verdicts[node],
                     calls: (@result.calls.map { |calls| calls[node] } if @result.exact))
          end
          list.sort_by { |one| [-one.cost.abs, one.node] }
        end

        private

        # By node: what a path of that presence belongs to; nil for other paths.
        def owners(presence)
          owners = [nil]
          classes = @result.paths.numbers.uniq.to_h { |number| [number, number.zero? ? nil : class_of(number)] }
          (1...@result.paths.size).each do |node|
            next owners << nil unless @result.presence(node) == presence

            above = owners[@result.paths.parents[node]]
            owners << (classes[@result.paths.numbers[node]] || above || ["", @result.method(node).name])
          end
          owners
        end

        # [path's first part, class] of a method that is no C function and not of Ruby's library.
        def class_of(number)
          method = @result.names[number]
          return if method.path.empty? || method.path.start_with?("ruby/", "(eval") || method.kind != 0

          name = MethodInfo.around(method.name).sub(PLACE, "")
          [method.path[%r{\A(?:gems/[^/]+|.*/)}].to_s, name[OWNER, 1] || name]
        end

        def group(nodes, cost, calls)
          methods = nodes.map { |node| @result.paths.numbers[node] }.uniq
          owner = class_of(@result.paths.numbers[nodes.first])&.last || @result.method(nodes.first).name
          owner = @result.method(nodes.first).name if methods.one?
          Group.new(node: nodes.first, owner: owner, cost: cost, calls: (calls if @result.exact),
                    methods: methods.size, doubt: doubt(nodes))
        end

        def doubt(nodes)
          found = nodes.map { |node| @result.verdicts[node] }.uniq
          %i[exact beyond chance].find { |verdict| found.include?(verdict) } || :small
        end

        def other_factor?(node)
          above = @result.paths.parents[node]
          a, b = @result.calls.map { |calls| calls[node] }
          return true if above.zero? || !@result.counted?(above)

          before, after = @result.calls.map { |calls| calls[above] }
          (b * before - a * after).abs > [b * before, a * after].max * 0.01
        end

        def through_one?(node)
          change = @result.change(node)
          @result.paths.children[node].any? do |child|
            @result.structural?(child) && @result.change(child).fdiv(change) > 0.5
          end
        end
      end
    end
  end
end
