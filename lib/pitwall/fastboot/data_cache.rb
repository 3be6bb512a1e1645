# frozen_string_literal: true

module Pitwall
  module Fastboot
    # Keeps what YAML, JSON and time zone files are parsed to: Psych.load_file, safe_load_file and unsafe_load_file,
    # JSON.load_file and load_file!, and `read` of tzinfo's reader. ext/fastboot/data.c has the methods that stand in
    # their place. In any doubt the library parses.
    #
    # Only plain data is stored (ParsedData, ZoneData). A YAML file is not stored if it has a tag that may run the
    # program's code.
    # @api private
    class DataCache
      # A call that the library answers. Its result is to be stored. (It is no Array, because `find` may return one as
      # data.)
      Call = Struct.new(:library, :receiver, :state, :options, :keywords)
      COUNTS = %i[hit hit_by_content hit_moved missing changed damaged odd refused stored fresh moving
                  warned silenced not_plain other_options changed_library]
               .to_h { |name| [name, :"data_#{name}"] }.freeze
      # Stands for data that is not plain, so that later boots do not try to store it again.
      NOT_PLAIN = "-"
      private_constant :Call, :COUNTS, :NOT_PLAIN

      #: (ProcessPack, Counts, Array[DataLibrary]) -> void
      def initialize(pack, counts, libraries)
        @pack = pack
        @counts = counts
        @waiting = libraries
        @libraries = {} # by the module with their methods
        @tried = {} # Native.sum of path and options of what the library has parsed to be stored
        Native.serve_data(self, Call)
      end

      # A file of code is going to be loaded: has the program loaded one of the libraries meanwhile?
      #: () -> void
      def keep
        Thread.handle_interrupt(Exceptions::LATER) do
          @waiting = @waiting.reject { |library| installed?(library) }
          Native.libraries_wait(@waiting.map { |library| library.name.to_sym })
        end
      end

      # @return the data; a Call: the library is to parse, and `parsed` gets the result; self: the library is to parse
      #: (untyped, Symbol, untyped, Hash[Symbol, untyped]?) -> untyped
      def find(receiver, method, file, keywords)
        Thread.handle_interrupt(Exceptions::LATER) do
          library = @libraries[receiver.is_a?(Module) ? receiver.singleton_class : receiver.class]
          answer(library, receiver, method, file, keywords)
        rescue *Exceptions::OWN => error
          refuse(file, error)
          self
        end
      end

      # The library has parsed the file.
      #: (Call, untyped) -> void
      def parsed(call, value)
        Thread.handle_interrupt(Exceptions::LATER) do
          count(store(call, value))
        rescue *Exceptions::OWN => error
          refuse(call.state.path, error)
        end
      end

      private

      # @return false: the program has not loaded it yet
      def installed?(library)
        done = library.install
        @counts.because(done) if done.is_a?(String)
        @libraries = { **@libraries, library.place => library } if done == true
        done
      rescue *Exceptions::OWN => error
        @counts.because("no cache of data: #{library.name}", error.class, error.message)
        true
      end

      def answer(library, receiver, method, file, keywords)
        return self if library.nil?
        unless library.own_result?(receiver)
          @counts.because(library.changed) if library.changed
          return count(:changed_library)
        end

        dependences = library.dependences(method, keywords) or return count(:other_options)
        path = path_of(file) or return count(:odd)
        options = Native.sum(dependences)
        bytes, how = @pack.find(Format::DATA, path, options)
        return count(:not_plain) if bytes == NOT_PLAIN

        begin
          return library.load(bytes, receiver, keywords).tap { count(how) } if bytes

          count(how)
        rescue *Exceptions::OWN => error
          refuse(path, error)
          @pack.rewrite
        end
        how == :odd || @pack.readonly? ? self : call(library, receiver, path, options, keywords)
      end

      # @return the absolute path, as the system call takes it; nil: in doubt
      def path_of(file)
        path = file.instance_of?(String) ? file : (File.path(file) if file.respond_to?(:to_path))
        return if path.nil?
        return path if path.start_with?("/")

        "#{Dir.pwd}/#{path}" unless path.empty?
      end

      # The library is to parse. The result is stored unless that was tried before, or the file changed in the last 3 s.
      # A new file may be made for one use only.
      def call(library, receiver, path, options, keywords)
        tried = Native.sum("#{options}\0#{path}")
        return self if @tried[tried]
        return count(:silenced) if $VERBOSE.nil?

        state = FileState.of(path) or return self
        return count(:fresh) if fresh?(state)

        @tried[tried] = true
        return count(:warned) unless Warnings.listen

        Call.new(library, receiver, state, options, keywords)
      end

      def fresh?(state) = !Native.settled?(state.attributes.last)

      # @return the count's name
      def store(call, value)
        return :warned unless Warnings.none?
        return :not_plain unless call.library.own_result?(call.receiver)

        state = call.state
        digest, attributes = state.unchanged
        return :moving if digest.nil?

        content = FileState.content(state.path, digest) or return :moving
        bytes = call.library.dump(value, call.receiver, call.keywords) if call.library.tags?(content) == false
        @pack.remember(Format::DATA, state.key, call.options, attributes, digest, bytes || NOT_PLAIN)
        bytes ? :stored : :not_plain
      end

      # @return self, as an answer
      def count(how)
        @counts.add(COUNTS.fetch(how))
        self
      end

      def refuse(file, error)
        @counts.add(:data_refused)
        @counts.because(file.instance_of?(String) ? file : "a file of data", error.class, error.message)
      end
    end
  end
end
