# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Settings of the process and of its threads. Effects compares them before and after a library is loaded. Comparing
    # objects does not show these settings: Ruby keeps some outside of objects, and makes new objects for others each
    # time.
    # @api private
    module ProcessState
      # Global variables that Ruby sets for each method or thread. Some names are aliases, which the library English
      # defines.
      OF_RUBY = %i[$_ $FILENAME $LAST_MATCH_INFO $MATCH $PREMATCH $POSTMATCH $LAST_PAREN_MATCH $NR $INPUT_LINE_NUMBER
                   $ERROR_INFO $ERROR_POSITION $CHILD_STATUS $LAST_READ_LINE].freeze
      WARNINGS = %i[deprecated experimental performance strict_unused_block].freeze
      ID = BasicObject.instance_method(:__id__)
      private_constant :OF_RUBY, :WARNINGS, :ID

      module_function

      # @return what it is => a value that is equal at each look while nothing changes
      #: () -> Hash[String, untyped]
      def now
        { "global variables" => globals, "the environment" => ENV.to_h, "the number of threads" => Thread.list.size,
          "the working directory" => Dir.pwd, "the file creation mask" => File.umask,
          "the default encodings" => [Encoding.default_external, Encoding.default_internal],
          "variables of a thread" => Thread.list.to_h { |thread| [thread, variables(thread)] },
          "settings of threads" => [Thread, *Thread.list].map { |thread| settings(thread) },
          "which warnings are shown" => warnings, "settings of garbage collection" => collection,
          "the seed of random numbers" => Random.seed,
          "options of the compiler" => [RubyVM::InstructionSequence.compile_option, RubyVM.keep_script_lines],
          "whether coverage runs" => defined?(::Coverage) && ::Coverage.running? }
      end

      # @return name => the object's id
      def globals
        names = global_variables.grep(%r{\A\$(?:[A-Za-z_]\w*|[,/;\\])\z}) - OF_RUBY
        names.to_h { |name| [name, id(eval(name.name))] }
      end

      # @return [Array] variables of the thread and of its fiber: name => the object's id
      def variables(thread)
        storage = thread.equal?(Thread.current) && Fiber.method_defined?(:storage) && Fiber.current.storage
        [thread.keys.to_h { |name| [name, id(thread[name])] },
         thread.thread_variables.to_h { |name| [name, id(thread.thread_variable_get(name))] },
         (storage || {}).transform_values { |value| id(value) }]
      end

      # @param thread [Thread, Class] the class has the settings of new threads
      def settings(thread)
        own = [thread.priority, thread.name] unless thread.equal?(Thread)
        [thread.abort_on_exception, thread.report_on_exception, *own]
      end

      def id(object) = ID.bind_call(object)

      def warnings
        WARNINGS.to_h do |name|
          [name, Warning[name]]
        rescue ArgumentError
          [name, nil] # this Ruby has no such warnings
        end
      end

      def collection
        was_disabled = GC.disable
        GC.enable unless was_disabled
        compacts = GC.auto_compact if GC.respond_to?(:auto_compact)
        [was_disabled, GC.stress, GC.measure_total_time, compacts, (GC.config if GC.respond_to?(:config))]
      end
    end
    private_constant :ProcessState
  end
end
