# frozen_string_literal: true

module Pitwall
  module Collect
    # Names the objects of reference paths, in the measured program, at its end. It calls no method of the program: an
    # object may be a BasicObject, or may have a method of the same name that does something else.
    # @api private
    module Holders
      # Ruby's own methods, by name.
      KERNEL = %i[class instance_variables instance_variable_get].to_h do |name|
        [name, Kernel.instance_method(name)]
      end.freeze
      MODULE = %i[name constants const_get autoload? class_variables class_variable_get singleton_class?].to_h do |name|
        [name, Module.instance_method(name)]
      end.freeze
      IS_A = Module.instance_method(:===)
      SAME = BasicObject.instance_method(:equal?)
      SIZES = { Array => Array.instance_method(:size), Hash => Hash.instance_method(:size) }.freeze
      THREAD_NAME = Thread.instance_method(:name)
      PROC_PLACE = Proc.instance_method(:source_location)
      MEMBERS = [Struct.instance_method(:members), Struct.instance_method(:[])].freeze
      RACTORS = (Ractor.method(:count) if defined?(Ractor) && Ractor.respond_to?(:count))
      # Names of Ruby's internal objects, by imemo_type. It has the types that users know something about.
      INTERNAL = { 0 => "variables of a block or method", 6 => "a method", 7 => "code" }.freeze
      # The most constants or variables of one holder that are compared with an object.
      MAX_NAMES = 20_000
      # Names of roots, by Ruby's name of the root's category.
      ROOTS = { "vm" => "the VM", "global_tbl" => "a global variable", "finalizers" => "a finalizer",
                "end_proc" => "an at_exit block" }.freeze
      GLOBAL = /\A\$[A-Za-z_]\w*\z/.freeze
      private_constant :KERNEL, :MODULE, :IS_A, :SAME, :SIZES, :THREAD_NAME, :PROC_PLACE, :MEMBERS, :RACTORS, :INTERNAL,
                       :MAX_NAMES, :ROOTS, :GLOBAL

      class << self
        # Whether there is only one Ractor. Other Ractors would change objects meanwhile.
        #: () -> bool
        def alone? = RACTORS.nil? || RACTORS.call == 1

        # @param paths [Array<Array>] each path: the root's category (nil: the path is cut), then for each step
        #   [true, object], or [false, imemo_type] for an internal object
        # @return [Array<Array<String>>] the name of each step, from the root on:
        #   ["Shop::ORDERS (Array of 12,000)", "Array of 2", "String"]
        #: (Array[untyped]) -> Array[Array[String]]
        def steps(paths)
          deprecated = Warning[:deprecated]
          Warning[:deprecated] = false
          paths.map { |root, *chain| chain.empty? ? [] : path(root, chain) }
        ensure
          Warning[:deprecated] = deprecated
        end

        private

        # The names of one path. The path begins at its last module, because a module's name says where it is: the steps
        # above it would add nothing.
        def path(root, chain)
          from = (chain.size - 2).downto(0).find { |at| module?(*chain[at]) && !singleton?(chain[at][1]) }
          first = from ? [] : [ROOTS.fetch(root, root ? "the VM (#{root})" : "…")]
          chain = chain.drop(from) if from
          steps = named(chain)
          variable = global(chain[0][1]) if from.nil? && root == "global_tbl" && chain[0][0]
          steps[0] = "#{variable} (#{steps[0]})" if variable
          first = [] if steps[0].to_s.start_with?("$")
          first + steps
        rescue StandardError
          ["(could not be named)"]
        end

        # The name of a step has the variable that leads to it and the object: "@rows (Hash of 3)".
        def named(chain)
          above = nil
          chain.each_with_index.filter_map do |(visible, object), at|
            next INTERNAL[object] unless visible

            label = above && label(above[0], object)
            text = label ? "#{label} (#{text(object)})" : text(object)
            above = [object]
            # A module has no step of its own if the next step's name has it: "Shop::ORDERS". Internal objects between
            # the two do not matter.
            after = chain.drop(at + 1).find(&:first)
            after && module?(true, object) && label(object, after[1]) ? nil : text
          end
        end

        def module?(visible, object) = visible && IS_A.bind_call(Module, object)

        def singleton?(object) = MODULE[:singleton_class?].bind_call(object)

        # The name of the constant, variable or member of `holder` that refers to an object; nil if it can't be found.
        def label(holder, object)
          if IS_A.bind_call(Module, holder)
            name = MODULE[:name].bind_call(holder)
            found = constant(holder, object)
            return holder.equal?(Object) ? found.to_s : "#{name || "(anonymous)"}::#{found}" if found

            found = class_variable(holder, object) || variable(holder, object)
            return found && "#{name || module_text(holder)} #{found}"
          end
          variable(holder, object) || member(holder, object)
        end

        def same?(one, other) = SAME.bind_call(one, other)

        def constant(holder, object)
          MODULE[:constants].bind_call(holder, false).first(MAX_NAMES).find do |name|
            !MODULE[:autoload?].bind_call(holder, name, false) &&
              same?(object, MODULE[:const_get].bind_call(holder, name, false))
          end
        end

        def class_variable(holder, object)
          MODULE[:class_variables].bind_call(holder, false).find do |name|
            same?(object, MODULE[:class_variable_get].bind_call(holder, name))
          end
        end

        def variable(holder, object)
          KERNEL[:instance_variables].bind_call(holder).first(MAX_NAMES).find do |name|
            same?(object, KERNEL[:instance_variable_get].bind_call(holder, name))
          end
        end

        def member(holder, object)
          return unless IS_A.bind_call(Struct, holder)

          MEMBERS[0].bind_call(holder).find { |name| same?(object, MEMBERS[1].bind_call(holder, name)) }&.to_s
        end

        def global(object)
          global_variables.grep(GLOBAL).find do |name|
            same?(object, eval(name.to_s)) # rubocop:disable Security/Eval -- the name was checked
          rescue StandardError
            false
          end
        end

        def text(object)
          return module_text(object) if IS_A.bind_call(Module, object)

          name = MODULE[:name].bind_call(KERNEL[:class].bind_call(object)) || "(anonymous class)"
          SIZES.each do |kind, size|
            return "#{name} of #{count(size.bind_call(object))}" if IS_A.bind_call(kind, object)
          end
          return "#{name} #{THREAD_NAME.bind_call(object) || "without a name"}" if IS_A.bind_call(Thread, object)
          return "#{name} at #{PROC_PLACE.bind_call(object).to_a.join(":")}" if IS_A.bind_call(Proc, object)

          name
        end

        def module_text(object)
          MODULE[:name].bind_call(object) || (singleton?(object) ? "a singleton class" : "(anonymous)")
        end

        def count(number) = number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
      end
    end
  end
end
